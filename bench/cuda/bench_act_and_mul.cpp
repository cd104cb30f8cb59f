// act_and_mul against a device-to-device copy of the same total bytes (read + written), and against the eager pair, in
// rounds. A table goes to stdout, JSON rows to the file named by --json.
//     bench_act_and_mul [--json FILE] [--rounds N]
#include <gatefold/gatefold.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "device_buffer.hpp"
#include "eager_pair.hpp"
#include "program.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

struct Shape {
  gatefold_dtype dtype;
  std::int64_t tokens;
  std::int64_t columns;
};

// The bars of the element-wise kernel, and the shapes around them that a serving engine meets.
constexpr Shape shapes[] = {
    {GATEFOLD_DTYPE_FP32, 2048, 8192},   {GATEFOLD_DTYPE_FP32, 8192, 8192},   {GATEFOLD_DTYPE_FP32, 32768, 8192},
    {GATEFOLD_DTYPE_BF16, 8192, 14336},  {GATEFOLD_DTYPE_BF16, 65536, 14336}, {GATEFOLD_DTYPE_FP16, 8192, 14336},
    {GATEFOLD_DTYPE_BF16, 16384, 28672},
};

const char* name_of(gatefold_dtype dtype) {
  return dtype == GATEFOLD_DTYPE_FP32 ? "fp32" : dtype == GATEFOLD_DTYPE_FP16 ? "fp16" : "bf16";
}

std::int64_t bytes_of(const Shape& s) { return s.tokens * s.columns * (s.dtype == GATEFOLD_DTYPE_FP32 ? 4 : 2); }

// One set of tensors. The copy moves half of three tensors' bytes from one buffer to another: read and written, as many
// bytes as the op's two inputs and one output.
struct Tensors {
  DeviceBuffer gate, up, out, activated, copy_from, copy_to;

  Tensors(const Shape& shape, std::uint64_t seed)
      : gate(bytes(shape)),
        up(bytes(shape)),
        out(bytes(shape)),
        activated(bytes(shape)),
        copy_from(bytes(shape) * 3 / 2),
        copy_to(bytes(shape) * 3 / 2) {
    gate.fill_normal(shape.dtype, seed);
    up.fill_normal(shape.dtype, seed + 1);
    copy_from.fill_normal(shape.dtype, seed + 2);
  }

 private:
  static std::size_t bytes(const Shape& shape) { return static_cast<std::size_t>(bytes_of(shape)); }
};

// As many sets as make one pass over them larger than the L2 cache several times over.
int set_count(const Shape& shape) {
  constexpr std::int64_t enough = std::int64_t{512} << 20;
  return static_cast<int>(std::max<std::int64_t>(2, (enough + 3 * bytes_of(shape) - 1) / (3 * bytes_of(shape))));
}

Plan make_plan(const Shape& shape, const Layout& layout) {
  return Plan({.op = GATEFOLD_OP_ACT_AND_MUL,
               .dtype = shape.dtype,
               .device = GATEFOLD_DEVICE_CUDA,
               .layout = layout,
               .activation = Activation::silu(),
               .intermediate_size = shape.columns});
}

std::vector<Timing> measure(const Shape& shape, const RoundOptions& options, std::string& implementation) {
  std::vector<Tensors> sets;
  for (int i = 0; i < set_count(shape); ++i) sets.emplace_back(shape, 10U * static_cast<unsigned>(i) + 1);
  const Plan plan = make_plan(shape, Layout::separate());
  implementation = plan.implementation(shape.tokens);
  const std::int64_t elements = shape.tokens * shape.columns;
  const auto set = [&](int i) -> const Tensors& { return sets[static_cast<std::size_t>(i) % sets.size()]; };
  return time_in_rounds({{"copy",
                          [&](int i, cudaStream_t stream) {
                            require(cudaMemcpyAsync(set(i).copy_to.get(), set(i).copy_from.get(),
                                                    set(i).copy_to.bytes(), cudaMemcpyDeviceToDevice, stream),
                                    "cudaMemcpyAsync");
                          }},
                         {"gatefold",
                          [&](int i, cudaStream_t stream) {
                            plan.run({.tokens = shape.tokens,
                                      .gate = set(i).gate.get(),
                                      .up = set(i).up.get(),
                                      .out = set(i).out.get(),
                                      .stream = stream});
                          }},
                         {"eager",
                          [&](int i, cudaStream_t stream) {
                            eager_silu(shape.dtype, set(i).gate.get(), set(i).activated.get(), elements, stream);
                            eager_multiply(shape.dtype, set(i).activated.get(), set(i).up.get(), set(i).out.get(),
                                           elements, stream);
                          }}},
                        options);
}

struct Row {
  Shape shape;
  std::string provider, implementation;
  double time, p10, p90, gbps, ratio_vs_copy, ratio_vs_eager;
  std::int64_t bytes_intermediate;
};

std::vector<Row> rows_of(const Shape& shape, const std::vector<Timing>& timings, const std::string& implementation) {
  const Timing& copy = timings[0];
  const Timing& eager = timings[2];
  std::vector<Row> rows;
  for (const Timing& t : timings) {
    const double bytes = static_cast<double>(bytes_of(shape)) * (t.name == "eager" ? 5.0 : 3.0);
    rows.push_back({shape, t.name, t.name == "gatefold" ? implementation : t.name, median(t.microseconds),
                    quantile(t.microseconds, 0.1), quantile(t.microseconds, 0.9), bytes / median(t.microseconds) * 1e-3,
                    median(ratios(copy, t)), median(ratios(eager, t)), t.name == "eager" ? bytes_of(shape) : 0});
  }
  return rows;
}

void print(const Row& r) {
  std::printf("| %s | %lld | %lld | %s | %.1f | %.1f | %.1f | %.0f | %.3f | %.3f |\n", name_of(r.shape.dtype),
              static_cast<long long>(r.shape.tokens), static_cast<long long>(r.shape.columns), r.provider.c_str(),
              r.time, r.p10, r.p90, r.gbps, r.ratio_vs_copy, r.ratio_vs_eager);
}

void write_row(std::FILE* file, const Row& r) {
  std::fprintf(file,
               "{\"op\": \"act_and_mul\", \"tokens\": %lld, \"intermediate_size\": %lld, \"dtype\": \"%s\", "
               "\"activation\": \"silu\", \"layout\": \"separate\", \"provider\": \"%s\", \"implementation\": \"%s\", "
               "\"time_us\": %.3f, \"time_us_p10\": %.3f, \"time_us_p90\": %.3f, \"gbps\": %.1f, "
               "\"bytes_intermediate\": %lld, \"ratio_vs_copy\": %.4f, \"ratio_vs_eager\": %.4f}",
               static_cast<long long>(r.shape.tokens), static_cast<long long>(r.shape.columns), name_of(r.shape.dtype),
               r.provider.c_str(), r.implementation.c_str(), r.time, r.p10, r.p90, r.gbps,
               static_cast<long long>(r.bytes_intermediate), r.ratio_vs_copy, r.ratio_vs_eager);
}

void run(int argc, char** argv) {
  RoundOptions options;
  std::string json;
  parse_options(argc, argv, 1, {text_option("--json", json), count_option("--rounds", options.rounds, 1)});
  const char* why = nullptr;
  if (gatefold_device_count(GATEFOLD_DEVICE_CUDA, &why) == 0) throw std::runtime_error(std::string("no GPU: ") + why);
  std::printf("| dtype | tokens | F | provider | us | p10 | p90 | GB/s | x copy | x eager |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<Row> all;
  for (const Shape& shape : shapes) {
    std::string implementation;
    const std::vector<Timing> timings = measure(shape, options, implementation);
    for (const Row& row : rows_of(shape, timings, implementation)) {
      print(row);
      all.push_back(row);
    }
    std::fflush(stdout);
  }
  if (json.empty()) return;
  ResultFile file(json, argc, argv);
  for (const Row& row : all) write_row(file.next_row(), row);
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_act_and_mul", [&] { gatefold::bench::run(argc, argv); });
}
