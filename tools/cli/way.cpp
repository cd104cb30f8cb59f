#include "cli/way.hpp"

#include <algorithm>
#include <cmath>

#include "checkpoint/input_error.hpp"
#if GATEFOLD_TOOL_WITH_CUBLASLT
#include "cli/cublaslt_products.hpp"
#endif

namespace gatefold::cli {
namespace {

Cost product_cost(const Block& block, std::int64_t columns, std::int64_t length) {
  const auto T = static_cast<double>(block.tokens);
  const auto N = static_cast<double>(columns);
  const auto K = static_cast<double>(length);
  return {2.0 * T * N * K, (T * K + N * K + T * N) * static_cast<double>(block.element())};
}

// `tensors` times T x F elements, read or written; no operations worth counting
Cost elementwise_cost(const Block& block, int tensors) { return {0.0, tensors * static_cast<double>(block.h_bytes())}; }

void add(Way& way, StagePtr stage, const Cost& cost) {
  way.stages.push_back(std::move(stage));
  way.cost += cost;
}

// The strongest products of a device. On the CPU they are the library's own, and with a bias too.
const ProductStages& baseline_products(const Block& block) {
  if (block.device == GATEFOLD_DEVICE_CPU || block.biases.any()) return library_products();
#if GATEFOLD_TOOL_WITH_CUBLASLT
  return cublaslt_products();
#else
  throw checkpoint::InputError("baselines on a GPU are cuBLASLt's, and this build found no cublasLt.h");
#endif
}

void add_half(Way& way, const Block& block, const ProductStages& products, bool up_half) {
  add(way, products.half(block, up_half), product_cost(block, block.intermediate_size, block.hidden_size));
}

// gate and up to memory: one product of packed weights, two of separate ones
void add_both_products(Way& way, const Block& block, const ProductStages& products) {
  const std::int64_t F = block.intermediate_size;
  const bool packed = block.layout.packed();
  add(way, products.gate(block), product_cost(block, packed ? 2 * F : F, block.hidden_size));
  if (!packed) add(way, products.up(block), product_cost(block, F, block.hidden_size));
  way.bytes_intermediate += static_cast<std::int64_t>(2 * block.h_bytes());
}

void add_act_and_mul(Way& way, const Block& block) { add(way, act_and_mul(block), elementwise_cost(block, 3)); }

void add_eager_pair(Way& way, const Block& block) {
  add(way, activation_pass(block), elementwise_cost(block, 2));
  add(way, multiply_pass(block), elementwise_cost(block, 3));
  way.bytes_intermediate += static_cast<std::int64_t>(block.h_bytes());
}

void add_gate_up(Way& way, const Block& block, StagePtr stage) {
  Cost cost = product_cost(block, 2 * block.intermediate_size, block.hidden_size);
  cost.bytes -= static_cast<double>(block.h_bytes());  // one half is all that is written
  add(way, std::move(stage), cost);
}

void add_gemm_gated(Way& way, const Block& block) {
  Cost cost = product_cost(block, block.intermediate_size, block.hidden_size);
  cost.bytes += static_cast<double>(block.h_bytes());  // reads gate
  add(way, gemm_gated(block), cost);
}

void add_down(Way& way, const Block& block, const ProductStages& products) {
  add(way, products.down(block), product_cost(block, block.hidden_size, block.intermediate_size));
}

// gemm_gated's operand gate is an input of the op: what a baseline adds to it is one product into `up`.
void add_up_only(Way& way, const Block& block, const ProductStages& products) {
  add_half(way, block, products, true);
  way.bytes_intermediate += static_cast<std::int64_t>(block.h_bytes());
}

Block with_separate_operands(const Block& block) {
  Block separate = block;
  separate.layout = Layout::separate();
  return separate;
}

std::optional<Way> make_gatefold(gatefold_op op, const Block& block) {
  Way way{.op = op, .provider = "gatefold"};
  switch (op) {
    case GATEFOLD_OP_ACT_AND_MUL: add_act_and_mul(way, block); break;
    case GATEFOLD_OP_GEMM:
      if (!half_rows(block, false).strided) return {};
      add_half(way, block, library_products(), false);
      break;
    case GATEFOLD_OP_GEMM_GATED:
      if (!half_rows(block, true).strided) return {};
      add_gemm_gated(way, block);
      break;
    case GATEFOLD_OP_GATE_UP: add_gate_up(way, block, gate_up(block)); break;
    case GATEFOLD_OP_MLP: {
      Cost cost = product_cost(block, 2 * block.intermediate_size, block.hidden_size);
      cost += product_cost(block, block.hidden_size, block.intermediate_size);
      cost.bytes -= static_cast<double>(block.h_bytes());
      add(way, mlp(block), cost);
      way.bytes_intermediate = static_cast<std::int64_t>(block.h_bytes());
      break;
    }
  }
  return way;
}

enum class Finish : std::uint8_t { nothing, act_and_mul, eager_pair };

// The op from bare products, followed by separate kernels or by nothing.
std::optional<Way> make_unfused_way(const char* provider, gatefold_op op, const Block& block, Finish finish,
                                    const ProductStages& products) {
  if (op == GATEFOLD_OP_GEMM || op == GATEFOLD_OP_ACT_AND_MUL) return {};
  Way way{.op = op, .provider = provider};
  Block operands = block;
  if (op == GATEFOLD_OP_GEMM_GATED) {
    if (!half_rows(block, true).strided) return {};
    add_up_only(way, block, products);
    operands = with_separate_operands(block);
  } else {
    add_both_products(way, block, products);
  }
  if (finish == Finish::act_and_mul) add_act_and_mul(way, operands);
  if (finish == Finish::eager_pair) add_eager_pair(way, operands);
  if (op == GATEFOLD_OP_MLP) {
    way.bytes_intermediate += static_cast<std::int64_t>(block.h_bytes());
    add_down(way, block, products);
  }
  return way;
}

std::optional<Way> make_unfused(gatefold_op op, const Block& block) {
  return make_unfused_way("unfused", op, block, Finish::act_and_mul, baseline_products(block));
}

std::optional<Way> make_eager(gatefold_op op, const Block& block) {
  if (op != GATEFOLD_OP_ACT_AND_MUL)
    return make_unfused_way("eager", op, block, Finish::eager_pair, baseline_products(block));
  Way way{.op = op, .provider = "eager"};
  add_eager_pair(way, block);
  return way;
}

std::optional<Way> make_gemm_only(gatefold_op op, const Block& block) {
  if (op != GATEFOLD_OP_GEMM) {
    return make_unfused_way("gemm-only", op, block, Finish::nothing, baseline_products(block));
  }
  if (!half_rows(block, false).strided) return {};
  Way way{.op = op, .provider = "gemm-only"};
  add_half(way, block, baseline_products(block), false);
  return way;
}

// The library's own plain products, where gemm-only's are another's.
std::optional<Way> make_gemm(gatefold_op op, const Block& block) {
  return make_unfused_way("gemm", op, block, Finish::nothing, library_products());
}

// The bound of element-wise work: a copy of the same number of bytes.
std::optional<Way> make_copy(gatefold_op op, const Block& block) {
  if (op != GATEFOLD_OP_ACT_AND_MUL) return {};
  Way way{.op = op, .provider = "copy"};
  add(way, copy_pass(block), elementwise_cost(block, 3));
  return way;
}

// gate, then gemm_gated, which multiplies while it computes up.
std::optional<Way> make_gated_way(const Block& block) {
  if (!half_rows(block, true).strided) return {};
  Way way{.op = GATEFOLD_OP_GEMM_GATED, .provider = "gatefold"};
  add_half(way, block, library_products(), false);
  add_gemm_gated(way, block);
  way.bytes_intermediate = static_cast<std::int64_t>(block.h_bytes());
  return way;
}

Json ratio_or_null(const Samples* baseline, const Samples& samples) {
  return baseline == nullptr ? Json(nullptr) : Json(speed_ratio(*baseline, samples));
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string Way::implementation() const {
  std::vector<std::string> names;
  for (const StagePtr& stage : stages) {
    std::string name = stage->implementation();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " + ") + name;
  return text;
}

std::size_t Way::workspace_size() const {
  std::size_t bytes = 0;
  for (const StagePtr& stage : stages) bytes = std::max(bytes, stage->workspace_size());
  return bytes;
}

const std::vector<Provider>& providers(gatefold_device device) {
  static const std::vector<Provider> cpu{{"gatefold", make_gatefold},
                                         {"unfused", make_unfused},
                                         {"eager", make_eager},
                                         {"gemm-only", make_gemm_only},
                                         {"copy", make_copy}};
  static const std::vector<Provider> cuda{{"gatefold", make_gatefold}, {"unfused", make_unfused},
                                          {"eager", make_eager},       {"gemm-only", make_gemm_only},
                                          {"gemm", make_gemm},         {"copy", make_copy}};
  return device == GATEFOLD_DEVICE_CPU ? cpu : cuda;
}

const Provider& find_provider(gatefold_device device, const std::string& name) {
  std::string known;
  for (const Provider& provider : providers(device)) {
    if (provider.name == name) return provider;
    known += (known.empty() ? "" : ", ") + provider.name;
  }
  checkpoint::throw_input_error("--provider: \"", name, "\" is not one of those on ", name_of(device), ": ", known);
}

std::vector<Way> ways_to_h(const Block& block) {
  Way eager = *make_unfused_way("eager", GATEFOLD_OP_GATE_UP, block, Finish::eager_pair, library_products());
  Way unfused = *make_unfused_way("unfused", GATEFOLD_OP_GATE_UP, block, Finish::act_and_mul, library_products());
  const std::ptrdiff_t products = block.layout.packed() ? 1 : 2;
  std::copy_n(eager.stages.begin(), products, unfused.stages.begin());
  std::vector<Way> ways{std::move(eager), std::move(unfused)};
  if (auto gated = make_gated_way(block)) ways.push_back(*gated);
  ways.push_back(*make_gatefold(GATEFOLD_OP_GATE_UP, block));
  return ways;
}

Way gate_up_way(const std::string& provider, const Block& block, StagePtr stage) {
  Way way{.op = GATEFOLD_OP_GATE_UP, .provider = provider};
  add_gate_up(way, block, std::move(stage));
  return way;
}

Way down_way(const Block& block) {
  Way way{.op = GATEFOLD_OP_GEMM, .provider = "gatefold"};
  add_down(way, block, library_products());
  return way;
}

Json result_row(const Way& way, const Block& block, const std::string& model, const Samples& samples,
                const Baselines& baselines) {
  const double seconds = median(samples);
  Json row{{"op", name_of(way.op)},
           {"model", model},
           {"tokens", block.tokens},
           {"hidden_size", block.hidden_size},
           {"intermediate_size", block.intermediate_size},
           {"dtype", name_of(block.dtype)},
           {"activation", name_of(block.activation)},
           {"layout", name_of(block.layout)},
           {"provider", way.provider},
           {"implementation", way.implementation()},
           {"time_us", seconds * 1e6},
           {"time_us_p10", quantile(samples, 0.1) * 1e6},
           {"time_us_p90", quantile(samples, 0.9) * 1e6},
           {"tflops", way.cost.flops == 0.0 ? Json(nullptr) : finite_or_null(way.cost.flops / seconds * 1e-12)},
           {"gbps", finite_or_null(way.cost.bytes / seconds * 1e-9)},
           {"bytes_intermediate", way.bytes_intermediate}};
  row["ratio_vs_unfused"] = ratio_or_null(baselines.unfused, samples);
  row["ratio_vs_gemm_only"] = ratio_or_null(baselines.gemm_only, samples);
  return row;
}

}  // namespace gatefold::cli
