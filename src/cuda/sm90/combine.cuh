#pragma once

#include <cute/numeric/numeric_types.hpp>

#include <type_traits>

#include "cuda/common/activation.cuh"
#include "cuda/common/element.cuh"

namespace gatefold::cuda::sm90 {

// h of two neighbouring columns.
struct Pair {
  float low;
  float high;
};

// What the epilogue applies, as a kernel argument: the activation is a run-time value here, since one more template
// argument would compile the main loop seven times over. The branch is uniform and taken once per tile.
struct Combine {
  Combine() = default;
  explicit Combine(const Activation& activation) : kind(activation.kind), clamped(activation) {}

  ActivationKind kind = ActivationKind::none;
  GatedActivation<ActivationKind::swiglu_clamped> clamped{Activation{}};

  // silu twice with one reciprocal: 1/a = b/(ab). The special function unit gives 4 results a cycle to each scheduler,
  // so a warp's ex2 and rcp per column take 16 cycles, ex2 and half an rcp 12: a quarter of the epilogue's longest
  // part. exp(-g) stops at 2^60, so that the product of two denominators stays finite: below g = -41 sigma stays at
  // 2^-60, an error of |g up| 2^-60. So a NaN in one column does not reach the other.
  static __device__ Pair silu_pair(float g0, float u0, float g1, float u1) {
    constexpr float log2_e = 1.44269504F;
    const float a = 1.0F + ptx::ex2(fminf(g0 * -log2_e, 60.0F));
    const float b = 1.0F + ptx::ex2(fminf(g1 * -log2_e, 60.0F));
    const float reciprocal = ptx::rcp(a * b);
    return {g0 * u0 * (reciprocal * b), g1 * u1 * (reciprocal * a)};
  }

  template <ActivationKind fixed>
  static __device__ Pair apply(float g0, float u0, float g1, float u1) {
    return {GatedActivation<fixed>::gated(g0, u0), GatedActivation<fixed>::gated(g1, u1)};
  }

  // Calls function with a callable (gate, up, gate, up) -> Pair.
  template <class Function>
  __device__ void dispatch(Function function) const {
    using Kind = ActivationKind;
    switch (kind) {
      case Kind::silu:
        return function([](float g0, float u0, float g1, float u1) { return silu_pair(g0, u0, g1, u1); });
      case Kind::gelu_tanh:
        return function([](float g0, float u0, float g1, float u1) { return apply<Kind::gelu_tanh>(g0, u0, g1, u1); });
      case Kind::gelu_erf:
        return function([](float g0, float u0, float g1, float u1) { return apply<Kind::gelu_erf>(g0, u0, g1, u1); });
      case Kind::relu:
        return function([](float g0, float u0, float g1, float u1) { return apply<Kind::relu>(g0, u0, g1, u1); });
      case Kind::sigmoid:
        return function([](float g0, float u0, float g1, float u1) { return apply<Kind::sigmoid>(g0, u0, g1, u1); });
      case Kind::swiglu_clamped:
        return function(
            [this](float g0, float u0, float g1, float u1) { return Pair{clamped(g0, u0), clamped(g1, u1)}; });
      case Kind::identity:
      case Kind::none:
        return function([](float g0, float u0, float g1, float u1) { return apply<Kind::identity>(g0, u0, g1, u1); });
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
