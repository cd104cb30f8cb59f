// How far the unfused chain and Gatefold are from what the chip can do at its power limit: a gated MLP, or its first
// product, by cuBLASLt (tuned) with act_and_mul; by Gatefold; by products out of shared memory beside copies of the
// weights to which nothing waits (ceiling.hpp); by these products alone; and merely reading the weights; in rounds,
// each from memory and for as long as the chip needs to settle. A table goes to stdout, rows as JSON to the file named
// by
// --json.
//     bench_ceiling [--json FILE] [--rounds N] [--milliseconds N] [--op mlp | gate_up] [--model NAME | --sizes DxF]
//                   [--tokens N,N...]
#include <algorithm>
#include <cstdio>
#include <gatefold/gatefold.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ceiling.hpp"
#include "mlp_ways.hpp"
#include "program.hpp"
#include "read_weights.hpp"
#include "rounds.hpp"
#include "tensor_loops.hpp"

namespace gatefold::bench {
namespace {

struct Row {
  const Model* model;
  std::int64_t tokens;
  std::string way;
  double microseconds;  // one layer
  double ratio;         // the unfused chain's time / this one's
};

// The first product and the activation, or the whole MLP, of one number of tokens.
class Work {
 public:
  Work(const CublasLt& library, const Model& m, const Tensors& t, std::int64_t tokens, bool whole)
      : model_(m), tensors_(t), tokens_(tokens), whole_(whole), unfused_(library, m, tokens), ours_(m, tokens, "") {
    unfused_.tune(t);
    cudaDeviceProp device{};
    require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    if (device.major != 9) throw std::runtime_error(std::string(device.name) + " is no sm_90");
    multiprocessors_ = device.multiProcessorCount;
    operands_ = std::make_unique<DeviceBuffer>(loop_words * 4);
    operands_->fill_normal(GATEFOLD_DTYPE_BF16, 1);
    sink_ = std::make_unique<DeviceBuffer>(ceiling_sink_bytes(multiprocessors_));
    require(cudaDeviceSynchronize(), "operands");
  }

  std::vector<Provider> providers() const {
    const auto through = [&](const char* name, void (Work::*one)(const Layer&, cudaStream_t) const) {
      return through_layers(name, tensors_.layers,
                            [this, one](const Layer& layer, cudaStream_t stream) { (this->*one)(layer, stream); });
    };
    return {through("cublaslt", &Work::unfused),
            through("gatefold", &Work::fused),
            beside("products, all operands", true, operand_bytes_again()),
            beside("products, weights", true, 0),
            beside("products", false, 0),
            through("reading", &Work::reading)};
  }

 private:
  void unfused(const Layer& layer, cudaStream_t stream) const {
    if (whole_) return unfused_.enqueue(tensors_, layer, tokens_, stream);
    unfused_.enqueue_gate_up(tensors_, layer, tokens_, stream);
  }
  void fused(const Layer& layer, cudaStream_t stream) const {
    if (whole_) return ours_.enqueue(tensors_, layer, tokens_, stream);
    Args a;
    a.tokens = tokens_;
    a.x = tensors_.x.get();
    a.gate = layer.gate_up.get();
    a.out = tensors_.h.get();
    a.workspace = {ours_.workspace.get(), ours_.workspace.bytes()};
    a.stream = stream;
    gate_up_.run(a);
  }
  void reading(const Layer& layer, cudaStream_t stream) const {
    read_weights(layer.gate_up.get(), layer.gate_up.bytes(), tensors_.sink.get(), stream);
    if (whole_) read_weights(layer.down.get(), layer.down.bytes(), tensors_.sink.get(), stream);
  }
  // A multiprocessor's registers hold the sums of 256 tokens by 224 rows of weights at most: so often do weights come
  // to one, and so many tokens with them.
  double operand_bytes_again() const {
    const double height = std::min<double>(256, static_cast<double>(tokens_));
    return static_cast<double>(tokens_) / height * (1 + height / 224) - 1;
  }
  Provider beside(const char* name, bool weights, double again) const {
    Ceiling c{.flops = 0,
              .weights = {},
              .again = again,
              .tokens = {.data = tensors_.x.get(), .bytes = tensors_.x.bytes()},
              .operands = operands_->get(),
              .sink = sink_->get()};
    for (const Layer& layer : tensors_.layers) {
      for (const DeviceBuffer* buffer : {&layer.gate_up, &layer.down}) {
        if (buffer == &layer.down && !whole_) continue;
        c.flops += static_cast<double>(buffer->bytes()) * static_cast<double>(tokens_);  // 2 of each weight's 2 bytes
        if (weights) c.weights.push_back({.data = buffer->get(), .bytes = buffer->bytes()});
      }
    }
    return {name, [this, c](int /*call*/, cudaStream_t stream) { run_ceiling(c, multiprocessors_, stream); }};
  }

  const Model& model_;
  const Tensors& tensors_;
  std::int64_t tokens_;
  bool whole_;
  Unfused unfused_;
  Ours ours_;
  Plan gate_up_{desc_of(GATEFOLD_OP_GATE_UP, model_.hidden_size, model_.intermediate_size)};
  int multiprocessors_ = 0;
  std::unique_ptr<DeviceBuffer> operands_, sink_;
};

std::vector<Row> measure(const CublasLt& library, const Model& m, const Tensors& t, std::int64_t tokens, bool whole,
                         const RoundOptions& options) {
  const Work work(library, m, t, tokens, whole);
  const std::vector<Timing> timings = time_in_rounds(work.providers(), options);
  std::vector<Row> rows;
  for (const Timing& timing : timings) {
    rows.push_back(
        {&m, tokens, timing.name, median(timing.microseconds) / m.layers(), median(ratios(timings[0], timing))});
  }
  return rows;
}

void run(int argc, char** argv) {
  std::string json;
  std::string model;
  std::string sizes;
  std::string tokens = "128,256,512";
  std::string op = "mlp";
  RoundOptions options{7, 100.0};
  parse_options(argc, argv, 1,
                {text_option("--json", json), text_option("--op", op), text_option("--model", model),
                 text_option("--sizes", sizes), text_option("--tokens", tokens),
                 time_option("--milliseconds", options.milliseconds), count_option("--rounds", options.rounds, 1)});
  if (op != "mlp" && op != "gate_up") throw std::invalid_argument("--op: \"" + op + "\" is neither mlp nor gate_up");
  const std::vector<Model> models = chosen_models(model, sizes);
  const std::vector<std::int64_t> counts = whole_numbers("--tokens", tokens, 1);
  const CublasLt library;
  std::vector<Row> rows;
  std::printf("| model | tokens | way | us a layer | x cuBLASLt |\n|---|---|---|---|---|\n");
  for (const Model& m : models) {
    const Tensors tensors(m, *std::ranges::max_element(counts));
    for (const std::int64_t count : counts) {
      for (const Row& r : measure(library, m, tensors, count, op == "mlp", options)) {
        std::printf("| %s | %lld | %s | %.2f | %.3f |\n", m.name.c_str(), static_cast<long long>(r.tokens),
                    r.way.c_str(), r.microseconds, r.ratio);
        rows.push_back(r);
      }
      std::fflush(stdout);
    }
  }
  if (json.empty()) return;
  ResultFile file(json, argc, argv);
  for (const Row& r : rows) {
    std::fprintf(file.next_row(),
                 "{\"op\": \"%s\", \"model\": \"%s\", \"tokens\": %lld, \"dtype\": \"bf16\", \"layout\": \"gate_up\", "
                 "\"provider\": \"%s\", \"time_us\": %.3f, \"ratio_vs_unfused\": %.4f}",
                 op.c_str(), r.model->name.c_str(), static_cast<long long>(r.tokens), r.way.c_str(), r.microseconds,
                 r.ratio);
  }
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_ceiling", [&] { gatefold::bench::run(argc, argv); });
}
