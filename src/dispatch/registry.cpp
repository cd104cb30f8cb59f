#include "dispatch/registry.hpp"

#include <array>

#include "cpu/implementations.hpp"
#include "dispatch/mlp.hpp"

namespace gatefold {
namespace {

using List = std::span<const Implementation* const>;

List cpu_implementations(Op op) {
#if GATEFOLD_WITH_ONEDNN
  static const std::array act_and_mul{cpu::onednn_act_and_mul(), cpu::reference()};
  static const std::array gemm{cpu::onednn_gemm(), cpu::reference()};
  static const std::array gemm_gated{cpu::onednn_gemm_gated(), cpu::reference()};
  static const std::array gate_up{cpu::onednn_gate_up(), cpu::reference()};
#else
  static const std::array act_and_mul{cpu::reference()};
  static const std::array gemm{cpu::reference()};
  static const std::array gemm_gated{cpu::reference()};
  static const std::array gate_up{cpu::reference()};
#endif
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

}  // namespace

List implementations(Op op, Device device) {
  if (device == Device::cpu) return cpu_implementations(op);
  return {};
}

}  // namespace gatefold
