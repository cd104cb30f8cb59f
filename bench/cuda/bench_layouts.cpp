// gate_up with the weights of one product taken in every layout, and in fp16, in turns: a layout is a descriptor, so
// all should take the same time. Ratios are to bf16 with [gate; up]. A table goes to stdout, rows as JSON to the file
// named by --json.
//     bench_layouts [--json FILE] [--rounds N]
#include <algorithm>
#include <cstdio>
#include <gatefold/gatefold.hpp>
#include <memory>
#include <string>
#include <vector>

#include "device_buffer.hpp"
#include "program.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

struct Shape {
  const char* model;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t tokens;
};

constexpr Shape shapes[] = {{"llama3.1-8b", 4096, 14336, 512},
                            {"llama3.1-8b", 4096, 14336, 4096},
                            {"llama3.1-70b", 8192, 28672, 512},
                            {"llama3.1-70b", 8192, 28672, 4096}};

struct Case {
  std::string name;
  gatefold_dtype dtype;
  Layout layout;
};

std::vector<Case> cases() {
  std::vector<Case> all{{"gate_up", GATEFOLD_DTYPE_BF16, Layout::gate_up()},
                        {"up_gate", GATEFOLD_DTYPE_BF16, Layout::up_gate()},
                        {"separate", GATEFOLD_DTYPE_BF16, Layout::separate()}};
  for (const std::int64_t block : {1, 2, 4, 8, 16, 32}) {
    all.push_back(
        {"interleaved_gate_up:" + std::to_string(block), GATEFOLD_DTYPE_BF16, Layout::interleaved_gate_up(block)});
  }
  all.push_back({"gate_up, fp16", GATEFOLD_DTYPE_FP16, Layout::gate_up()});
  return all;
}

// The operands of one product in one element type: the weights' bytes are read as any layout.
struct Operands {
  DeviceBuffer x, weights, h;

  Operands(const Shape& s, gatefold_dtype dtype)
      : x(bytes(s.tokens * s.hidden_size)),
        weights(bytes(2 * s.intermediate_size * s.hidden_size)),
        h(bytes(s.tokens * s.intermediate_size)) {
    x.fill_normal(dtype, 1);
    weights.fill_normal(dtype, 2);
  }

  Args args(const Shape& s, const Layout& layout, cudaStream_t stream) const {
    const auto half = bytes(s.intermediate_size * s.hidden_size);
    Args a;
    a.tokens = s.tokens;
    a.x = x.get();
    a.gate = weights.get();
    a.up = layout.packed() ? nullptr : static_cast<const std::byte*>(weights.get()) + half;
    a.out = h.get();
    a.stream = stream;
    return a;
  }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(2 * elements); }
};

Plan plan_of(const Shape& s, const Case& c) {
  return Plan({.op = GATEFOLD_OP_GATE_UP,
               .dtype = c.dtype,
               .device = GATEFOLD_DEVICE_CUDA,
               .layout = c.layout,
               .activation = Activation::silu(),
               .hidden_size = s.hidden_size,
               .intermediate_size = s.intermediate_size});
}

struct Row {
  Shape shape;
  std::string name;
  std::string implementation;
  double microseconds;
  double ratio;  // the first case's time / this one's
};

std::vector<Row> measure(const Shape& shape, const RoundOptions& options) {
  const Operands bf16(shape, GATEFOLD_DTYPE_BF16);
  const Operands fp16(shape, GATEFOLD_DTYPE_FP16);
  std::vector<Row> rows;
  std::vector<Provider> providers;
  for (const Case& c : cases()) {
    const auto plan = std::make_shared<Plan>(plan_of(shape, c));
    const Operands& operands = c.dtype == GATEFOLD_DTYPE_BF16 ? bf16 : fp16;
    rows.push_back({shape, c.name, plan->implementation(shape.tokens), 0.0, 0.0});
    providers.push_back({c.name, [&shape, &operands, plan, layout = c.layout](int /*call*/, cudaStream_t stream) {
                           plan->run(operands.args(shape, layout, stream));
                         }});
  }
  const std::vector<Timing> timings = time_in_rounds(providers, options);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].microseconds = median(timings[i].microseconds);
    rows[i].ratio = median(ratios(timings.front(), timings[i]));
  }
  return rows;
}

void write_row(std::FILE* file, const Row& r) {
  std::fprintf(file,
               "{\"model\": \"%s\", \"tokens\": %lld, \"case\": \"%s\", \"implementation\": \"%s\", \"time_us\": %.2f, "
               "\"ratio\": %.4f}",
               r.shape.model, static_cast<long long>(r.shape.tokens), r.name.c_str(), r.implementation.c_str(),
               r.microseconds, r.ratio);
}

void run(int argc, char** argv) {
  std::string json;
  RoundOptions options{15, 60.0};  // with nine rounds a case still varied by 1.5 %
  parse_options(argc, argv, 1, {text_option("--json", json), count_option("--rounds", options.rounds, 1)});
  std::vector<Row> rows;
  std::printf("| model | tokens | weights | implementation | us | x [gate; up] |\n|---|---|---|---|---|---|\n");
  for (const Shape& shape : shapes) {
    for (const Row& r : measure(shape, options)) {
      std::printf("| %s | %lld | %s | %s | %.1f | %.3f |\n", r.shape.model, static_cast<long long>(r.shape.tokens),
                  r.name.c_str(), r.implementation.c_str(), r.microseconds, r.ratio);
      rows.push_back(r);
    }
  }
  if (json.empty()) return;
  ResultFile file(json, argc, argv);
  for (const Row& row : rows) write_row(file.next_row(), row);
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_layouts", [&] { gatefold::bench::run(argc, argv); });
}
