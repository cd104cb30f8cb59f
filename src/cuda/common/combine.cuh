#pragma once

#include <cstdint>

#include "cuda/common/activation.cuh"
#include "cuda/common/ptx.cuh"

// How an epilogue makes h of accumulators, two neighbouring columns at a time.
namespace gatefold::cuda {

// h of two neighbouring columns.
struct Pair {
  float low;
  float high;
};

// Whether two sums share the reciprocal of their sigmoids, which then depend on each other in their last bits, or each
// has its own; either: as own_reciprocals of what combines says.
enum class Reciprocals : std::uint8_t { shared, own, either };

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
  explicit Combine(const Activation& activation, bool own = false)
      : kind(activation.kind),
        own_reciprocals(own),
        limit(activation.limit),
        alpha(activation.alpha),
        beta(activation.beta) {}

  ActivationKind kind = ActivationKind::none;
  bool own_reciprocals = false;
  float limit = 0.0F;  // swiglu_clamped's
  float alpha = 0.0F;
  float beta = 0.0F;

  // NaN stays NaN.
  static __device__ float below(float x, float most) { return x > most ? most : x; }
  __device__ float linear(float u) const { return (u < -limit ? -limit : below(u, limit)) + beta; }

  // 1 + exp(-y), which stops at 2^60, so that the product of two stays finite: a NaN in one column does not reach the
  // other.
  static __device__ float denominator(float y) {
    constexpr float log2_e = 1.44269504F;
    return 1.0F + ptx::ex2(fminf(y * -log2_e, 60.0F));
  }

  // sigma(y) from the reciprocal of factor * denominator(y). There sigma would stay at 2^-60, and an infinite g at
  // infinity. Less 2^-59, and no less than 0, it is 0 from y = -41 on, and g sigma(y) is NaN at -inf as it should be;
  // by the instruction that multiplies. The difference is far below the error of a sum that is 41 or more.
  static __device__ float sigmoid(float reciprocal, float factor) {
    return ptx::saturated_fma(reciprocal, factor, -0x1p-59F);
  }

  // g sigma(y) u of two columns, with one reciprocal: 1/p = q/(pq). The special function unit gives 4 results a cycle
  // to each scheduler, so a warp's ex2 and rcp per column take 16 cycles, ex2 and half an rcp 12: a quarter of the
  // epilogue's longest part. sigma comes before u, lest g u overflow where the result doesn't.
  static __device__ Pair sigmoid_pair(float g0, float y0, float u0, float g1, float y1, float u1) {
    const float p = denominator(y0);
    const float q = denominator(y1);
    const float reciprocal = ptx::rcp(p * q);
    return {g0 * sigmoid(reciprocal, q) * u0, g1 * sigmoid(reciprocal, p) * u1};
  }

  // The same of one, whatever is beside it.
  static __device__ float gated_sigmoid(float g, float y, float u) {
    return g * sigmoid(ptx::rcp(denominator(y)), 1.0F) * u;
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
  template <Reciprocals reciprocals = Reciprocals::shared, class Function>
  __device__ __forceinline__ void dispatch(Function function) const {
    using Kind = ActivationKind;
    switch (kind) {
      case Kind::silu: return dispatch_sigmoid<reciprocals>(function, [](float g, float u) { return Gated{g, g, u}; });
      case Kind::gelu_tanh:
        return dispatch_sigmoid<reciprocals>(function,
                                             [](float g, float u) { return Gated{g, twice_tanh_argument(g), u}; });
      case Kind::gelu_erf:
        return function(
            [](float g0, float u0, float g1, float u1) { return Pair{gelu_erf(g0, u0), gelu_erf(g1, u1)}; });
      case Kind::relu: return function(EachColumn<Kind::relu>{});
      case Kind::sigmoid: return function(EachColumn<Kind::sigmoid>{});
      case Kind::swiglu_clamped:
        return dispatch_sigmoid<reciprocals>(function, [this](float g, float u) {
          const float clamped = below(g, limit);
          return Gated{clamped, alpha * clamped, linear(u)};
        });
      case Kind::identity:
      case Kind::none: return function(EachColumn<Kind::identity>{});
    }
  }

 private:
  struct Gated {  // g sigma(y) u
    float g, y, u;
  };

  // gated_of(gate, up) -> Gated.
  template <Reciprocals reciprocals, class Function, class GatedOf>
  __device__ __forceinline__ void dispatch_sigmoid(Function function, GatedOf gated_of) const {
    const auto shared = [gated_of](float g0, float u0, float g1, float u1) {
      const Gated a = gated_of(g0, u0);
      const Gated b = gated_of(g1, u1);
      return sigmoid_pair(a.g, a.y, a.u, b.g, b.y, b.u);
    };
    const auto own = [gated_of](float g0, float u0, float g1, float u1) {
      const Gated a = gated_of(g0, u0);
      const Gated b = gated_of(g1, u1);
      return Pair{gated_sigmoid(a.g, a.y, a.u), gated_sigmoid(b.g, b.y, b.u)};
    };
    if constexpr (reciprocals == Reciprocals::shared) {
      function(shared);
    } else if constexpr (reciprocals == Reciprocals::own) {
      function(own);
    } else if (own_reciprocals) {
      function(own);
    } else {
      function(shared);
    }
  }
};

// The same, with each column for itself and as exact as GatedActivation: for results in fp32, and for a gate
// that is given.
struct ExactCombine {
  ExactCombine() = default;
  explicit ExactCombine(const Activation& activation, bool own = true)
      : kind(activation.kind), own_reciprocals(own), clamped(activation) {}

  ActivationKind kind = ActivationKind::none;
  bool own_reciprocals = true;
  GatedActivation<ActivationKind::swiglu_clamped> clamped{Activation{}};  // the only one with parameters

  template <Reciprocals reciprocals = Reciprocals::own, class Function>
  __device__ __forceinline__ void dispatch(Function function) const {
    using Kind = ActivationKind;
    switch (kind) {
      case Kind::silu:
        if constexpr (reciprocals == Reciprocals::either) {
          if (!own_reciprocals) return function(FourSilu{});
        }
        return function(EachColumn<Kind::silu>{});
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
