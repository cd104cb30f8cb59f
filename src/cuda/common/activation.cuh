#pragma once

#include <cmath>

#include "core/types.hpp"
#include "cuda/common/ptx.cuh"

// The activations on the device, in fp32. Each functor has
//     gated(g, u)   act(g) times what it is multiplied by; a call is the same
//     act(g)        what the gate half becomes
//     factor(u)     what it is multiplied by
// They follow the definitions of src/cpu/activation.hpp within the bounds of gatefold_check: a relative error near
// 2^-20 max(1, |g|/8), and NaN and infinities as there. gated() keeps that where act(g) alone is subnormal or zero, and
// only its product with a large u is not.
namespace gatefold::cuda {

namespace detail {

// The square root of exp(-|y|): it is a normal number down to |y| = 174, where the exponential itself ends at 87.
//
// x sigma(y) u from it. For y >= 0, sigma(y) = 1 / (1 + e). For y < 0 it is e / (1 + e), as the product
// (x sqrt(e)) * (sqrt(e) / (1 + e) u): neither side overflows where the result doesn't, and neither is subnormal where
// the result isn't. Unlike 1 / (1 + exp(-y)) the denominator stays between 1 and 2.
__device__ __forceinline__ float times_sigmoid(float x, float root, bool negative, float u) {
  const float reciprocal = ptx::rcp(fmaf(root, root, 1.0F));
  const float scale = negative ? root : 1.0F;
  return (x * scale) * (scale * reciprocal * u);
}

// 2^-(magnitude * (factor + factor_low)), the exponent formed in two parts. An absolute error of the exponent becomes a
// relative one of the result, so |exponent| 2^-24 would be too much where it reaches 100. ln 2 * remainder is below
// 2^-17, so its exponential is 1 + itself.
__device__ __forceinline__ float exp2_of_product(float magnitude, float factor, float factor_low) {
  constexpr float ln2 = 0.693147181F;
  const float exponent = magnitude * factor;
  const float remainder = fmaf(magnitude, factor_low, fmaf(magnitude, factor, -exponent));
  const float power = ptx::ex2(-exponent);
  return fmaf(power, remainder * -ln2, power);
}

// sqrt(exp(-|g|)) = 2^-(|g| log2(e) / 2). The second constant makes up for the rounding of the first; what remains is
// one rounding of the exponent.
__device__ __forceinline__ float root_of_exp(float g) {
  constexpr double half_log2_e = 0.7213475204444817;
  constexpr auto high = static_cast<float>(half_log2_e);
  constexpr auto low = static_cast<float>(half_log2_e - static_cast<double>(high));
  return ptx::ex2(-fmaf(fabsf(g), high, fabsf(g) * low));
}

}  // namespace detail

template <ActivationKind kind>
struct GatedActivation;

template <>
struct GatedActivation<ActivationKind::silu> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float gated(float g, float u) {
    return detail::times_sigmoid(g, detail::root_of_exp(g), g < 0.0F, u);
  }
  __device__ __forceinline__ static float act(float g) { return gated(g, 1.0F); }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }
};

template <>
struct GatedActivation<ActivationKind::sigmoid> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float gated(float g, float u) {
    return detail::times_sigmoid(1.0F, detail::root_of_exp(g), g < 0.0F, u);
  }
  __device__ __forceinline__ static float act(float g) { return gated(g, 1.0F); }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }
};

// g/2 (1 + tanh z) = g sigma(2z), and z log2(e) = g (a + b g^2) with a = sqrt(2/pi) log2(e), b = 0.044715 a. The
// polynomial is evaluated in two parts: at g = -8 the exponent of exp(2z) is 71.
template <>
struct GatedActivation<ActivationKind::gelu_tanh> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float gated(float g, float u) {
    constexpr double a = 1.15110409907216;
    constexpr double b = 0.05147161979001;
    constexpr auto a_high = static_cast<float>(a);
    constexpr auto a_low = static_cast<float>(a - static_cast<double>(a_high));
    constexpr auto b_high = static_cast<float>(b);
    constexpr auto b_low = static_cast<float>(b - static_cast<double>(b_high));
    const float magnitude = fminf(fabsf(g), 16.0F);  // the exponent there is 229, and the power 0 from 127 on
    const float square = magnitude * magnitude;
    const float square_low = fmaf(magnitude, magnitude, -square);
    const float cubic = square * b_high;
    const float cubic_low = fmaf(square_low, b_high, fmaf(square, b_low, fmaf(square, b_high, -cubic)));
    const float sum = a_high + cubic;
    const float cubic_part = sum - a_high;  // two-sum: what the addition lost
    const float lost = (a_high - (sum - cubic_part)) + (cubic - cubic_part);
    const float root = detail::exp2_of_product(magnitude, sum, lost + (cubic_low + a_low));
    return detail::times_sigmoid(g, root, g < 0.0F, u);
  }
  __device__ __forceinline__ static float act(float g) { return gated(g, 1.0F); }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }
};

template <>
struct GatedActivation<ActivationKind::gelu_erf> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float gated(float g, float u) { return act(g) * u; }
  __device__ __forceinline__ static float act(float g) {
    constexpr float sqrt_half = 0.707106781F;
    return 0.5F * g * (1.0F + erff(g * sqrt_half));
  }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }
};

template <>
struct GatedActivation<ActivationKind::relu> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float gated(float g, float u) { return act(g) * u; }
  __device__ __forceinline__ static float act(float g) { return g < 0.0F ? 0.0F : g; }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }
};

template <>
struct GatedActivation<ActivationKind::identity> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float gated(float g, float u) { return g * u; }
  __device__ __forceinline__ static float act(float g) { return g; }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }
};

template <>
struct GatedActivation<ActivationKind::swiglu_clamped> {
  explicit GatedActivation(const Activation& parameters) : limit(parameters.limit), beta(parameters.beta) {
    constexpr double half_log2_e = 0.7213475204444817;
    const double scale = std::fmin(std::abs(static_cast<double>(parameters.alpha)) * half_log2_e, 0x1.fffffep127);
    scale_high = static_cast<float>(scale);
    scale_low = static_cast<float>(scale - static_cast<double>(scale_high));
    // Past an exponent of 256 the power is 0. Without an end an infinite g would make inf - inf of it.
    reach = static_cast<float>(std::fmin(256.0 / scale, 0x1.fffffep127));
    negative_alpha = parameters.alpha < 0.0F;
  }

  __device__ __forceinline__ float gated(float g, float u) const { return product(g, factor(u)); }
  __device__ __forceinline__ float act(float g) const { return product(g, 1.0F); }
  __device__ __forceinline__ float factor(float u) const {
    const float clamped = u < -limit ? -limit : (u > limit ? limit : u);
    return clamped + beta;
  }
  __device__ __forceinline__ float operator()(float g, float u) const { return gated(g, u); }

  float limit, beta;
  float scale_high, scale_low;  // |alpha| log2(e) / 2
  float reach;
  bool negative_alpha;

 private:
  __device__ __forceinline__ float product(float g, float by) const {
    const float clamped = g > limit ? limit : g;
    const float root = detail::exp2_of_product(fminf(fabsf(clamped), reach), scale_high, scale_low);
    return detail::times_sigmoid(clamped, root, (clamped < 0.0F) != negative_alpha, by);
  }
};

}  // namespace gatefold::cuda
