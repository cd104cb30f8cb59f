// A whole gated MLP for few tokens, in CUDA graphs that go through several layers' weights, so that these come from
// memory: by cuBLASLt (tuned) with act_and_mul between its products, by Gatefold, and merely reading the weights, in
// rounds. A table goes to stdout, rows as JSON to the file named by --json.
//     bench_decode [--json FILE] [--rounds N] [--milliseconds N] [--model NAME | --sizes DxF] [--tokens N,N...]
//                  [--implementation NAME,NAME...] [--kernels gemm | gate_up] [--within X]
// --implementation: each is forced for both products, or by "gate_up=NAME" or "gemm=NAME" for one (GATEFOLD_IMPL), and
// by both of these with a + between; "" is the library's own choice, batch-invariant that of a plan by which a row's
// bits hang on nothing but the row.
// --kernels: every kernel that can take this product is forced for it, and those that take at most X (1.08) times as
// long as the fastest in two short rounds are measured. Whether the choice is right where the chip has settled at its
// 700 W: --milliseconds 100.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gatefold/gatefold.hpp>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layers.hpp"
#include "mlp_ways.hpp"
#include "program.hpp"
#include "read_weights.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

struct Row {
  const Model* model;
  std::int64_t tokens;
  std::string way;
  double microseconds;  // one layer
  double ratio;         // the unfused chain's time / this one's
  double reading;       // the time of reading the weights alone / this one's
};

// "PRODUCT=IMPLEMENTATION:KERNEL" of all that can take an mlp's product.
std::vector<std::string> kernels_of(const Model& m, const std::string& product) {
  const bool second = product == "gemm";
  const gatefold_op op = second ? GATEFOLD_OP_GEMM : GATEFOLD_OP_GATE_UP;
  const Plan plan(second ? desc_of(op, m.intermediate_size, m.hidden_size)
                         : desc_of(op, m.hidden_size, m.intermediate_size));
  std::vector<std::string> names;
  for (int i = 0; const char* implementation = gatefold_implementation_name(op, GATEFOLD_DEVICE_CUDA, i); ++i) {
    for (const std::string& kernel : plan.kernels(implementation)) {
      names.emplace_back(product).append("=").append(implementation).append(":").append(kernel);
    }
  }
  return names;
}

// Gatefold's ways, and the buffers that their graphs hold on to.
class Ways {
 public:
  Ways(const Model& m, const Tensors& t, std::int64_t tokens) : model_(m), tensors_(t), tokens_(tokens) {}

  Provider of(const std::string& implementation) {
    return provider(implementation, std::make_unique<const Ours>(model_, tokens_, implementation));
  }

  // Of the product's kernels those that come within `within` times the fastest.
  std::vector<Provider> of_kernels(const std::string& product, double within) {
    std::vector<Provider> all;
    for (const std::string& kernel : kernels_of(model_, product)) {
      if (auto ours = that_runs(kernel)) all.push_back(provider(kernel, std::move(ours)));
    }
    const std::vector<Timing> timings = time_in_rounds(all, {2, 2.0});
    double best = std::numeric_limits<double>::infinity();
    for (const Timing& timing : timings) best = std::min(best, median(timing.microseconds));
    std::vector<Provider> near;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (median(timings[i].microseconds) <= within * best) near.push_back(all[i]);
    }
    return near;
  }

 private:
  Provider provider(const std::string& implementation, std::unique_ptr<const Ours> ours) {
    const Ours& way = *ours_.emplace_back(std::move(ours));
    const std::string name = implementation.empty()              ? "gatefold"
                             : implementation == batch_invariant ? "gatefold, batch-invariant"
                                                                 : implementation;
    return through_layers(name, tensors_.layers, [&](const Layer& layer, cudaStream_t stream) {
      way.enqueue(tensors_, layer, tokens_, stream);
    });
  }

  // Not every kernel takes every number of tokens: then null. What fails may not be captured.
  std::unique_ptr<const Ours> that_runs(const std::string& kernel) const {
    try {
      auto ours = std::make_unique<const Ours>(model_, tokens_, kernel);
      ours->enqueue(tensors_, tensors_.layers[0], tokens_, nullptr);
      require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      return ours;
    } catch (const Error&) {
      return nullptr;
    }
  }

  const Model& model_;
  const Tensors& tensors_;
  std::int64_t tokens_;
  std::vector<std::unique_ptr<const Ours>> ours_;
};

struct Options {
  std::vector<std::string> implementations;
  std::string kernels;  // of which product, "" of none
  double within = 1.08;
  RoundOptions rounds{9, 20.0};
};

std::vector<Row> measure(const CublasLt& library, const Model& m, const Tensors& t, std::int64_t tokens,
                         const Options& options) {
  Unfused unfused(library, m, tokens);
  unfused.tune(t);
  std::vector<Provider> providers;
  providers.push_back(through_layers("cublaslt", t.layers, [&](const Layer& layer, cudaStream_t stream) {
    unfused.enqueue(t, layer, tokens, stream);
  }));
  providers.push_back(through_layers("reading", t.layers, [&](const Layer& layer, cudaStream_t stream) {
    read_weights(layer.gate_up.get(), layer.gate_up.bytes(), t.sink.get(), stream);
    read_weights(layer.down.get(), layer.down.bytes(), t.sink.get(), stream);
  }));
  Ways ways(m, t, tokens);
  for (const std::string& implementation : options.implementations) providers.push_back(ways.of(implementation));
  if (!options.kernels.empty()) {
    for (Provider& provider : ways.of_kernels(options.kernels, options.within)) providers.push_back(provider);
  }
  const std::vector<Timing> timings = time_in_rounds(providers, options.rounds);
  std::vector<Row> rows;
  for (const Timing& timing : timings) {
    rows.push_back({&m, tokens, timing.name, median(timing.microseconds) / m.layers(),
                    median(ratios(timings[0], timing)), median(ratios(timings[1], timing))});
  }
  return rows;
}

std::vector<std::string> parts_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  if (parts.empty()) parts.emplace_back();
  return parts;
}

void run(int argc, char** argv) {
  std::string json;
  std::string model;
  std::string sizes;
  std::string tokens = "1,2,4,8,16,32,64";
  std::string implementations;
  Options options;
  parse_options(
      argc, argv, 1,
      {text_option("--json", json), text_option("--model", model), text_option("--sizes", sizes),
       text_option("--tokens", tokens), text_option("--implementation", implementations),
       text_option("--kernels", options.kernels), time_option("--within", options.within),
       time_option("--milliseconds", options.rounds.milliseconds), count_option("--rounds", options.rounds.rounds, 1)});
  if (!options.kernels.empty() && options.kernels != "gemm" && options.kernels != "gate_up") {
    throw std::invalid_argument("--kernels: \"" + options.kernels + "\" is neither gemm nor gate_up");
  }
  options.implementations = parts_of(implementations);
  const std::vector<Model> models = chosen_models(model, sizes);
  const std::vector<std::int64_t> counts = whole_numbers("--tokens", tokens, 1);
  const CublasLt library;
  std::vector<Row> rows;
  std::printf("| model | tokens | way | us a layer | x cuBLASLt | of reading |\n|---|---|---|---|---|---|\n");
  for (const Model& m : models) {
    const Tensors tensors(m, *std::ranges::max_element(counts));
    for (const std::int64_t count : counts) {
      for (const Row& r : measure(library, m, tensors, count, options)) {
        std::printf("| %s | %lld | %s | %.2f | %.3f | %.3f |\n", m.name.c_str(), static_cast<long long>(r.tokens),
                    r.way.c_str(), r.microseconds, r.ratio, r.reading);
        rows.push_back(r);
      }
      std::fflush(stdout);
    }
  }
  if (json.empty()) return;
  ResultFile file(json, argc, argv);
  for (const Row& r : rows) {
    std::fprintf(file.next_row(),
                 "{\"op\": \"mlp\", \"model\": \"%s\", \"tokens\": %lld, \"dtype\": \"bf16\", \"layout\": \"gate_up\", "
                 "\"provider\": \"%s\", \"time_us\": %.3f, \"ratio_vs_unfused\": %.4f, "
                 "\"fraction_of_read_bandwidth\": %.4f}",
                 r.model->name.c_str(), static_cast<long long>(r.tokens), r.way.c_str(), r.microseconds, r.ratio,
                 r.reading);
  }
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_decode", [&] { gatefold::bench::run(argc, argv); });
}
