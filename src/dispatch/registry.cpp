#include "dispatch/registry.hpp"

#include <array>

#include "cpu/implementations.hpp"
#if GATEFOLD_WITH_CUDA
#include "cuda/implementations.hpp"
#endif
#include "dispatch/mlp.hpp"

namespace gatefold {
namespace {

using List = std::span<const Implementation* const>;

List cpu_implementations(Op op) {
  static const std::array act_and_mul{cpu::vector_act_and_mul(), cpu::reference()};
  static const std::array gemm{cpu::loops(), cpu::reference()};
  static const std::array gemm_gated{cpu::loops(), cpu::reference()};
  static const std::array gate_up{cpu::loops(), cpu::reference()};
  static const std::array mlp{composed_mlp(), cpu::reference_mlp()};
  switch (op) {
    case Op::act_and_mul: return act_and_mul;
    case Op::gemm: return gemm;
    case Op::gemm_gated: return gemm_gated;
    case Op::gate_up: return gate_up;
    case Op::mlp: return mlp;
  }
  return {};
}

#if GATEFOLD_WITH_CUDA
List cuda_implementations(Op op) {
  static const std::array act_and_mul{cuda::vector_act_and_mul(), cuda::simt_act_and_mul()};
  static const std::array gemm{cuda::sm90_decode_products(), cuda::sm90_products(), cuda::decode_products(),
                               cuda::sm80_products(), cuda::simt_gemm()};
  static const std::array gemm_gated{cuda::sm90_products(), cuda::sm80_products(), cuda::simt_gemm_gated()};
  static const std::array gate_up{cuda::sm90_decode_products(), cuda::sm90_products(),         cuda::decode_products(),
                                  cuda::sm80_products(),        cuda::sm80_even_odd_gate_up(), cuda::simt_gate_up()};
  static const std::array mlp{composed_mlp()};
  switch (op) {
    case Op::act_and_mul: return act_and_mul;
    case Op::gemm: return gemm;
    case Op::gemm_gated: return gemm_gated;
    case Op::gate_up: return gate_up;
    case Op::mlp: return mlp;
  }
  return {};
}
#else
List cuda_implementations(Op /*op*/) { return {}; }
#endif

}  // namespace

List implementations(Op op, Device device) {
  return device == Device::cpu ? cpu_implementations(op) : cuda_implementations(op);
}

}  // namespace gatefold
