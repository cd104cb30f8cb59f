#pragma once

#include <cute/numeric/numeric_types.hpp>

#include <type_traits>

#include "cuda/common/activation.cuh"
#include "cuda/common/element.cuh"

namespace gatefold::cuda::sm90 {

// What the epilogue applies, as a kernel argument: the activation is a run-time value here, since one more template
// argument would compile the main loop seven times over. The branch is uniform and taken once per tile.
struct Combine {
  Combine() = default;
  explicit Combine(const Activation& activation) : kind(activation.kind), clamped(activation) {}

  ActivationKind kind = ActivationKind::none;
  GatedActivation<ActivationKind::swiglu_clamped> clamped{Activation{}};

  template <ActivationKind fixed>
  static __device__ float apply(float gate, float up) {
    using Act = GatedActivation<fixed>;
    return Act::act(gate) * Act::factor(up);
  }

  // Calls function with a callable (gate, up) -> h.
  template <class Function>
  __device__ void dispatch(Function function) const {
    using Kind = ActivationKind;
    switch (kind) {
      case Kind::silu: return function([](float g, float u) { return apply<Kind::silu>(g, u); });
      case Kind::gelu_tanh: return function([](float g, float u) { return apply<Kind::gelu_tanh>(g, u); });
      case Kind::gelu_erf: return function([](float g, float u) { return apply<Kind::gelu_erf>(g, u); });
      case Kind::relu: return function([](float g, float u) { return apply<Kind::relu>(g, u); });
      case Kind::sigmoid: return function([](float g, float u) { return apply<Kind::sigmoid>(g, u); });
      case Kind::swiglu_clamped: return function([this](float g, float u) { return clamped(g, u); });
      case Kind::identity:
      case Kind::none: return function([](float g, float u) { return apply<Kind::identity>(g, u); });
    }
  }
};

// Two results, rounded to the element type, lower address first.
template <class Element>
__device__ std::uint32_t pack(float low, float high) {
  using Stored = std::conditional_t<std::is_same_v<Element, cute::bfloat16_t>, __nv_bfloat16, __half>;
  const float pair[2] = {low, high};
  return Word<Stored>::pack(pair);
}

}  // namespace gatefold::cuda::sm90
