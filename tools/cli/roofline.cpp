#include "cli/roofline.hpp"

#include <algorithm>

#include "cli/bench_data.hpp"

namespace gatefold::cli {
namespace {

double copy_bytes_per_second(Backend& backend, const TimingOptions& timing) {
  const std::size_t bytes = std::max<std::size_t>(4 * backend.cache_bytes(), std::size_t{64} << 20);
  const auto elements = static_cast<std::int64_t>(bytes / 4);
  const DeviceBuffer from = random_normal(backend, GATEFOLD_DTYPE_FP32, elements, 1.0, 1);
  const DeviceBuffer to(backend, bytes);
  const auto samples =
      time_in_rounds(backend, {{"copy", [&](std::int64_t) { backend.copy(to.writable(), from.data(), bytes); }}},
                     timing, [](const std::string&) {});
  return 2.0 * static_cast<double>(bytes) / median(samples.front());
}

double product_flops_per_second(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing) {
  const std::int64_t size = backend.device() == GATEFOLD_DEVICE_CPU ? 1024 : 8192;  // well into the compute-bound
  const Block block{
      .device = backend.device(), .dtype = dtype, .hidden_size = size, .intermediate_size = size, .tokens = size};
  const std::vector<Way> ways{*find_provider(backend.device(), "gatefold").make(GATEFOLD_OP_GEMM, block)};
  const RotatingWeights weights(backend, block, false, 1);
  const BenchData data(backend, GATEFOLD_OP_GEMM, block, ways, &weights, 1);
  const auto samples =
      time_in_rounds(backend, {{"gemm", [&](std::int64_t call) { ways.front().enqueue(data.of_call(call), backend); }}},
                     timing, [](const std::string&) {});
  return ways.front().cost.flops / median(samples.front());
}

}  // namespace

Peaks measure_peaks(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing) {
  return {copy_bytes_per_second(backend, timing), product_flops_per_second(backend, dtype, timing)};
}

void add_roofline(Json& row, const Cost& cost, const Peaks& peaks) {
  const double memory_seconds = cost.bytes / peaks.bytes_per_second;
  const double compute_seconds = cost.flops / peaks.flops_per_second;
  const double bound = std::max(memory_seconds, compute_seconds);
  row["bytes"] = cost.bytes;
  row["flops"] = cost.flops;
  row["intensity"] = cost.bytes == 0.0 ? Json(nullptr) : Json(cost.flops / cost.bytes);
  row["bound"] = memory_seconds >= compute_seconds ? "memory" : "compute";
  row["bound_time_us"] = bound * 1e6;
  row["fraction_of_bound"] = bound * 1e6 / row["time_us"].get<double>();
}

}  // namespace gatefold::cli
