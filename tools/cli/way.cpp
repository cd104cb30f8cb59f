#include "cli/way.hpp"

#include <algorithm>
#include <cmath>

#include "checkpoint/input_error.hpp"
#if GATEFOLD_TOOL_WITH_CUBLASLT
#include "cli/cublaslt_products.hpp"
#endif

namespace gatefold::cli {
namespace {

// The strongest products of a device. On the CPU they are the library's own, and with a bias too.
const ProductStages& baseline_products(const Block& block) {
  if (block.device == GATEFOLD_DEVICE_CPU || block.biases.any()) return library_products();
#if GATEFOLD_TOOL_WITH_CUBLASLT
  return cublaslt_products();
#else
  throw checkpoint::InputError("baselines on a GPU are cuBLASLt's, and this build found no cublasLt.h");
#endif
}

bool is_strided(const Block& block, bool up_half) { return half_rows(block, up_half).strided; }

Block with_separate_operands(const Block& block) {
  Block separate = block;
  separate.layout = Layout::separate();
  return separate;
}

using Stages = std::vector<StagePtr>;

void append(Stages& stages, Stages more) { stages.insert(stages.end(), more.begin(), more.end()); }

// gate and up to memory: one product of packed weights, two of separate ones
Stages both_products(const Block& block, const ProductStages& products) {
  if (block.layout.packed()) return {products.gate(block)};
  return {products.gate(block), products.up(block)};
}

// What follows bare products: separate kernels, or nothing.
enum class Finish : std::uint8_t { nothing, act_and_mul, eager_pair };

Stages finish_of(Finish finish, const Block& operands) {
  switch (finish) {
    case Finish::nothing: return {};
    case Finish::act_and_mul: return {act_and_mul(operands)};
    case Finish::eager_pair: return {activation_pass(operands), multiply_pass(operands)};
  }
  return {};
}

// The op from bare products. gemm_gated's gate is an input of the op, so of those only up's is left.
std::optional<Way> from_products(const char* provider, gatefold_op op, const Block& block, Finish finish,
                                 const ProductStages& products) {
  Stages stages;
  switch (op) {
    case GATEFOLD_OP_ACT_AND_MUL:
    case GATEFOLD_OP_GEMM: return {};
    case GATEFOLD_OP_GEMM_GATED:
      if (!is_strided(block, true)) return {};
      stages = {products.half(block, true)};
      append(stages, finish_of(finish, with_separate_operands(block)));
      break;
    case GATEFOLD_OP_GATE_UP:
    case GATEFOLD_OP_MLP:
      stages = both_products(block, products);
      append(stages, finish_of(finish, block));
      break;
  }
  if (op == GATEFOLD_OP_MLP) stages.push_back(products.down(block));
  return Way(op, provider, std::move(stages));
}

std::optional<Way> one_stage(const char* provider, gatefold_op op, StagePtr stage) {
  return Way(op, provider, {std::move(stage)});
}

// ---- the providers --------------------------------------------------------------------------------------------------

std::optional<Way> make_gatefold(gatefold_op op, const Block& block) {
  switch (op) {
    case GATEFOLD_OP_ACT_AND_MUL: return one_stage("gatefold", op, act_and_mul(block));
    case GATEFOLD_OP_GEMM:
      if (!is_strided(block, false)) return {};
      return one_stage("gatefold", op, library_products().half(block, false));
    case GATEFOLD_OP_GEMM_GATED:
      if (!is_strided(block, true)) return {};
      return one_stage("gatefold", op, gemm_gated(block));
    case GATEFOLD_OP_GATE_UP: return one_stage("gatefold", op, gate_up(block));
    case GATEFOLD_OP_MLP: return one_stage("gatefold", op, mlp(block));
  }
  return {};
}

std::optional<Way> make_unfused(gatefold_op op, const Block& block) {
  return from_products("unfused", op, block, Finish::act_and_mul, baseline_products(block));
}

std::optional<Way> make_eager(gatefold_op op, const Block& block) {
  if (op == GATEFOLD_OP_ACT_AND_MUL) return Way(op, "eager", finish_of(Finish::eager_pair, block));
  return from_products("eager", op, block, Finish::eager_pair, baseline_products(block));
}

std::optional<Way> make_gemm_only(gatefold_op op, const Block& block) {
  if (op != GATEFOLD_OP_GEMM) return from_products("gemm-only", op, block, Finish::nothing, baseline_products(block));
  if (!is_strided(block, false)) return {};
  return one_stage("gemm-only", op, baseline_products(block).half(block, false));
}

// The library's own plain products, where gemm-only's are another's.
std::optional<Way> make_gemm(gatefold_op op, const Block& block) {
  return from_products("gemm", op, block, Finish::nothing, library_products());
}

// The bound of element-wise work: a copy of the same number of bytes.
std::optional<Way> make_copy(gatefold_op op, const Block& block) {
  if (op != GATEFOLD_OP_ACT_AND_MUL) return {};
  return one_stage("copy", op, copy_pass(block));
}

// Is what a stage leaves the op's output? gemm's is, whatever it stands for in the block.
bool is_output(gatefold_op op, Leaves leaves) {
  if (op == GATEFOLD_OP_GEMM) return true;
  return leaves == (op == GATEFOLD_OP_MLP ? Leaves::y : Leaves::h);
}

Json ratio_or_null(const Samples* baseline, const Samples& samples) {
  return baseline == nullptr ? Json(nullptr) : Json(speed_ratio(*baseline, samples));
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Way::Way(gatefold_op the_op, std::string the_provider, std::vector<StagePtr> the_stages)
    : op(the_op), provider(std::move(the_provider)), stages(std::move(the_stages)) {
  for (const StagePtr& stage : stages) {
    const Work work = stage->work();
    cost += work.cost;
    bytes_intermediate += work.bytes_inside + (is_output(op, work.leaves) ? 0 : work.bytes_left);
  }
}

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
  const Stages products = both_products(block, library_products());
  const auto finished = [&](const char* provider, Finish finish) {
    Stages stages = products;
    append(stages, finish_of(finish, block));
    return Way(GATEFOLD_OP_GATE_UP, provider, std::move(stages));
  };
  std::vector<Way> ways{finished("eager", Finish::eager_pair), finished("unfused", Finish::act_and_mul)};
  if (is_strided(block, true)) {
    // gate, then gemm_gated, which multiplies while it computes up
    Stages gated{library_products().half(block, false), gemm_gated(block)};
    ways.emplace_back(GATEFOLD_OP_GEMM_GATED, "gatefold", std::move(gated));
  }
  ways.push_back(*make_gatefold(GATEFOLD_OP_GATE_UP, block));
  return ways;
}

Way down_way(const Block& block) { return {GATEFOLD_OP_GEMM, "gatefold", {library_products().down(block)}}; }

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
