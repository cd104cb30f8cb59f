#pragma once

#include "cuda/common/activation.cuh"
#include "cuda/common/ptx.cuh"

// How an epilogue makes h of accumulators, two neighbouring columns at a time.
namespace gatefold::cuda {

// h of two neighbouring columns.
struct Pair {
  float low;
  float high;
};

// Two columns, each for itself.
template <ActivationKind kind>
struct EachColumn {
  __device__ Pair operator()(float g0, float u0, float g1, float u1) const {
    return {GatedActivation<kind>::gated(g0, u0), GatedActivation<kind>::gated(g1, u1)};
  }
};

// silu of four columns with one reciprocal, as Combine::sigmoid_pair's of two: 10 cycles of the special function unit a
// column. The product of four denominators stays finite where no gate is below `least`, exp(20) being 2^28.9; a NaN
// among them would reach the others. Such values are for EachColumn.
struct FourSilu : EachColumn<ActivationKind::silu> {
  static constexpr float least = -20.0F;

  __device__ static void gated(const float (&g)[4], const float (&u)[4], float (&h)[4]) {
    constexpr float log2_e = 1.44269504F;
    float p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = 1.0F + ptx::ex2(g[i] * -log2_e);
    const float low = p[0] * p[1];
    const float high = p[2] * p[3];
    const float reciprocal = ptx::rcp(low * high);
    const float of_low = reciprocal * high;
    const float of_high = reciprocal * low;
    // sigma(g) u first: it cannot overflow, and where it is subnormal h is little more.
    h[0] = g[0] * (of_low * p[1] * u[0]);
    h[1] = g[1] * (of_low * p[0] * u[1]);
    h[2] = g[2] * (of_high * p[3] * u[2]);
    h[3] = g[3] * (of_high * p[2] * u[3]);
  }
};

// What the epilogue applies, as a kernel argument: the activation is a run-time value here, since one more template
// argument would compile the main loop seven times over. The branch is uniform and taken once per tile.
struct Combine {
  Combine() = default;
  explicit Combine(const Activation& activation)
      : kind(activation.kind), limit(activation.limit), alpha(activation.alpha), beta(activation.beta) {}

  ActivationKind kind = ActivationKind::none;
  float limit = 0.0F;  // swiglu_clamped's
  float alpha = 0.0F;
  float beta = 0.0F;

  // NaN stays NaN.
  static __device__ float below(float x, float most) { return x > most ? most : x; }
  __device__ float linear(float u) const { return (u < -limit ? -limit : below(u, limit)) + beta; }

  // g0 sigma(y0) u0 and g1 sigma(y1) u1 with one reciprocal: 1/p = q/(pq). The special function unit gives 4 results a
  // cycle to each scheduler, so a warp's ex2 and rcp per column take 16 cycles, ex2 and half an rcp 12: a quarter of
  // the epilogue's longest part. exp(-y) stops at 2^60, so that the product of two denominators stays finite. So a NaN
  // in one column does not reach the other.
  //
  // There sigma would stay at 2^-60, and an infinite g at infinity. Less 2^-59, and no less than 0, it is 0 from y =
  // -41 on, and g sigma(y) is NaN at -inf as it should be; by the instruction that multiplies. The difference is far
  // below the error of a sum that is 41 or more. sigma comes before u, lest g u overflow where the result doesn't.
  static __device__ Pair sigmoid_pair(float g0, float y0, float u0, float g1, float y1, float u1) {
    constexpr float log2_e = 1.44269504F;
    const float p = 1.0F + ptx::ex2(fminf(y0 * -log2_e, 60.0F));
    const float q = 1.0F + ptx::ex2(fminf(y1 * -log2_e, 60.0F));
    const float reciprocal = ptx::rcp(p * q);
    return {g0 * ptx::saturated_fma(reciprocal, q, -0x1p-59F) * u0,
            g1 * ptx::saturated_fma(reciprocal, p, -0x1p-59F) * u1};
  }

  // g/2 (1 + tanh z) = g sigma(2z), 2z = 2 sqrt(2/pi) (g + 0.044715 g^3)
  static __device__ float twice_tanh_argument(float g) {
    constexpr float a = 1.59576912F;
    constexpr float b = 0.0713548163F;
    return g * fmaf(g * g, b, a);
  }

  // g Phi(g), Phi by Abramowitz and Stegun's 7.1.26: within 1.5e-7 / 2 of itself, and straight-line code. The library's
  // erff, unrolled over a tile's columns, spills registers beside 192 accumulators.
  static __device__ float gelu_erf(float g, float u) {
    constexpr float half_log2_e = 0.721347520F;
    const float t = ptx::rcp(fmaf(fabsf(g), 0.231641889F, 1.0F));  // 0.3275911 / sqrt(2)
    float p = fmaf(t, 1.061405429F, -1.453152027F);
    p = fmaf(t, p, 1.421413741F);
    p = fmaf(t, p, -0.284496736F);
    p = fmaf(t, p, 0.254829592F);
    const float tail = 0.5F * t * p * ptx::ex2(g * g * -half_log2_e);
    return g * (g < 0.0F ? tail : 1.0F - tail) * u;
  }

  // Calls function with a callable (gate, up, gate, up) -> Pair.
  template <class Function>
  __device__ __forceinline__ void dispatch(Function function) const {
    using Kind = ActivationKind;
    switch (kind) {
      case Kind::silu:
        return function([](float g0, float u0, float g1, float u1) { return sigmoid_pair(g0, g0, u0, g1, g1, u1); });
      case Kind::gelu_tanh:
        return function([](float g0, float u0, float g1, float u1) {
          return sigmoid_pair(g0, twice_tanh_argument(g0), u0, g1, twice_tanh_argument(g1), u1);
        });
      case Kind::gelu_erf:
        return function(
            [](float g0, float u0, float g1, float u1) { return Pair{gelu_erf(g0, u0), gelu_erf(g1, u1)}; });
      case Kind::relu: return function(EachColumn<Kind::relu>{});
      case Kind::sigmoid: return function(EachColumn<Kind::sigmoid>{});
      case Kind::swiglu_clamped:
        return function([this](float g0, float u0, float g1, float u1) {
          const float c0 = below(g0, limit);
          const float c1 = below(g1, limit);
          return sigmoid_pair(c0, alpha * c0, linear(u0), c1, alpha * c1, linear(u1));
        });
      case Kind::identity:
      case Kind::none: return function(EachColumn<Kind::identity>{});
    }
  }
};

// The same, with each column for itself and as exact as GatedActivation: for results in fp32, and for a gate
// that is given.
struct ExactCombine {
  ExactCombine() = default;
  explicit ExactCombine(const Activation& activation) : kind(activation.kind), clamped(activation) {}

  ActivationKind kind = ActivationKind::none;
  GatedActivation<ActivationKind::swiglu_clamped> clamped{Activation{}};  // the only one with parameters

  template <class Function>
  __device__ __forceinline__ void dispatch(Function function) const {
    using Kind = ActivationKind;
    switch (kind) {
      case Kind::silu: return function(FourSilu{});
      case Kind::gelu_tanh: return function(EachColumn<Kind::gelu_tanh>{});
      case Kind::gelu_erf: return function(EachColumn<Kind::gelu_erf>{});
      case Kind::relu: return function(EachColumn<Kind::relu>{});
      case Kind::sigmoid: return function(EachColumn<Kind::sigmoid>{});
      case Kind::swiglu_clamped:
        return function([this](float g0, float u0, float g1, float u1) {
          return Pair{clamped.gated(g0, u0), clamped.gated(g1, u1)};
        });
      case Kind::identity:
      case Kind::none: return function(EachColumn<Kind::identity>{});
    }
  }
};

}  // namespace gatefold::cuda
