#include "cuda/common/activation.cuh"
#include "cuda/common/executor.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/common/specialise.hpp"
#include "cuda/implementations.hpp"
#include "cuda/simt/product_kernel.cuh"

namespace gatefold::cuda {
namespace {

constexpr std::int64_t most_blocks = 0x7fffffff;

// Consecutive rows.
RowView plain_rows(const std::byte* base, std::int64_t rows, std::int64_t stride) {
  return {base, {0, rows > 0 ? rows : 1, rows > 0 ? rows : 1}, stride};
}

ProductParams product_params(const Problem& p, const Operands& o) {
  const std::int64_t size = size_of(p.types.x);
  const std::int64_t F = p.intermediate_size;
  ProductParams params{};
  params.x = plain_rows(o.x, o.tokens, p.ld_x * size);
  params.out = plain_rows(o.out, o.tokens, p.ld_out * size);
  params.up = plain_rows(o.up, F, p.ld_up * size);
  params.gate = plain_rows(o.gate, o.tokens, p.ld_gate * size);
  if (p.op == Op::gate_up) {
    const HalfView gate = half_view(p, o, Half::gate);
    const HalfView up = half_view(p, o, Half::up);
    params.gate = {gate.base, gate.map, gate.ld * size};
    params.up = {up.base, up.map, up.ld * size};
  }
  const BiasView gate_bias = bias_view(p, o, Half::gate);
  const BiasView up_bias = bias_view(p, o, Half::up);
  params.gate_bias = {gate_bias.base, gate_bias.map};
  params.up_bias = {up_bias.base, up_bias.map};
  params.row_scale = o.row_scale;
  params.tokens = o.tokens;
  params.columns = F;
  params.depth = p.hidden_size;
  params.column_tiles = (F + SimtTile::size - 1) / SimtTile::size;
  return params;
}

// gemm has no activation, and its kernel never calls one.
template <Product product, class Function>
Status with_activation_of(const Activation& activation, Function&& function) {
  if constexpr (product == Product::gemm) {
    return function(ActivationTag<ActivationKind::identity>{});
  } else {
    return with_activation(activation.kind, function);
  }
}

template <Product product>
class Executor final : public DeviceExecutor {
 public:
  using DeviceExecutor::DeviceExecutor;

 private:
  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    const ProductParams params = product_params(problem(), operands);
    const std::int64_t blocks = params.column_tiles * ((operands.tokens + SimtTile::size - 1) / SimtTile::size);
    if (blocks > most_blocks) {
      return unsupported("tokens: ", operands.tokens, " x ", params.columns, " takes ", blocks,
                         " blocks, a launch has at most ", most_blocks);
    }
    return with_element(problem().types.x, [&](auto element) {
      using Element = typename decltype(element)::type;
      return with_activation_of<product>(problem().activation, [&](auto kind) {
        using ThisActivation = GatedActivation<decltype(kind)::value>;
        return launch_kernel(product_kernel<Element, product, ThisActivation>,
                             {dim3(static_cast<unsigned>(blocks)), dim3(SimtTile::threads)}, device.index, stream,
                             params, ThisActivation(problem().activation));
      });
    });
  }
};

template <Product product>
class Simt final : public Implementation {
 public:
  std::string_view name() const override { return "simt"; }
  bool batch_invariant() const override { return true; }
  Verdict supports(const Problem& problem) const override {
    if (problem.row_scale && product == Product::gemm_gated) return {false, "takes no row_scale"};
    return require_capability(least_capability, no_upper_capability, "plain fp32 arithmetic; takes everything, slowly");
  }
  std::unique_ptr<gatefold::Executor> prepare(const Problem& problem) const override {
    return std::make_unique<Executor<product>>(problem);
  }
};

const Simt<Product::gemm> gemm;
const Simt<Product::gemm_gated> gemm_gated;
const Simt<Product::gate_up> gate_up;

}  // namespace

const Implementation* simt_gemm() { return &gemm; }
const Implementation* simt_gemm_gated() { return &gemm_gated; }
const Implementation* simt_gate_up() { return &gate_up; }

}  // namespace gatefold::cuda
