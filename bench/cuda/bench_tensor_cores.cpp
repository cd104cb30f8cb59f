// What the tensor cores of a Hopper reach by themselves, settled, out of registers and shared memory: the ceiling of
// the kernels, which the power limit sets. Operands are normal values unless said otherwise. A table goes to stdout,
// rows as JSON to the file named by --json.
//     bench_tensor_cores [--json FILE] [--rounds N]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "device_buffer.hpp"
#include "program.hpp"
#include "rounds.hpp"
#include "tensor_loops.hpp"

namespace gatefold::bench {
namespace {

constexpr double flops_of_launch = 1.2e12;  // about two milliseconds

struct Row {
  std::string name;
  double teraflops;
};

DeviceBuffer operands(gatefold_dtype dtype, unsigned mask) {
  DeviceBuffer buffer(loop_words * 4);
  buffer.fill_normal(dtype, 1);
  mask_words(buffer.get(), loop_words, mask, nullptr);
  require(cudaDeviceSynchronize(), "operands");
  return buffer;
}

std::vector<Row> measure(const RoundOptions& options) {
  cudaDeviceProp device{};
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  if (device.major != 9) throw std::runtime_error(std::string(device.name) + " is no sm_90");
  const int multiprocessors = device.multiProcessorCount;

  const DeviceBuffer bf16 = operands(GATEFOLD_DTYPE_BF16, 0xffff);
  const DeviceBuffer fp16 = operands(GATEFOLD_DTYPE_FP16, 0xffff);
  const DeviceBuffer short_fp16 = operands(GATEFOLD_DTYPE_FP16, 0xfff8);  // 7 of the fraction's 10 bits
  const DeviceBuffer zeros = operands(GATEFOLD_DTYPE_BF16, 0);
  const DeviceBuffer out(static_cast<std::size_t>(multiprocessors) * 256 * 4);

  struct Case {
    TensorLoop loop;
    std::string data;
    const DeviceBuffer* operands;
  };
  const std::vector<Case> cases{{sync_loop_in_registers(), "", &bf16},
                                {sync_loop_with_reads(), "", &bf16},
                                {wgmma_loop_bf16(), "", &bf16},
                                {wgmma_loop_fp16(), "", &fp16},
                                {wgmma_loop_fp16(), ", 7 bits of fraction", &short_fp16},
                                {wgmma_loop_bf16(), ", zeros", &zeros}};
  std::vector<Provider> providers;
  std::vector<double> flops;  // of a launch
  for (const Case& c : cases) {
    const int steps = static_cast<int>(flops_of_launch / (c.loop.flops * multiprocessors));
    flops.push_back(c.loop.flops * multiprocessors * steps);
    providers.push_back({c.loop.name + c.data, [&c, &out, multiprocessors, steps](int /*call*/, cudaStream_t stream) {
                           c.loop.launch(c.operands->get(), static_cast<float*>(out.get()), multiprocessors, steps,
                                         stream);
                         }});
  }
  const std::vector<Timing> timings = time_in_rounds(providers, options);
  require(cudaGetLastError(), "a loop");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    rows.push_back({timings[i].name, flops[i] / (median(timings[i].microseconds) * 1e-6) / 1e12});
  }
  return rows;
}

void run(int argc, char** argv) {
  std::string json;
  RoundOptions options{7, 200.0};
  parse_options(argc, argv, 1, {text_option("--json", json), count_option("--rounds", options.rounds, 1)});
  const std::vector<Row> rows = measure(options);
  std::printf("| loop | TFLOP/s |\n|---|---|\n");
  for (const Row& row : rows) std::printf("| %s | %.1f |\n", row.name.c_str(), row.teraflops);
  if (json.empty()) return;
  ResultFile file(json, argc, argv);
  for (const Row& row : rows) {
    std::fprintf(file.next_row(), "{\"loop\": \"%s\", \"teraflops\": %.1f}", row.name.c_str(), row.teraflops);
  }
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_tensor_cores", [&] { gatefold::bench::run(argc, argv); });
}
