#pragma once

#include <cmath>

#include "core/types.hpp"
#include "cuda/common/ptx.cuh"

// The activations on the device, in fp32. Each functor has
//     act(g)      what the gate half becomes
//     factor(u)   what it is multiplied by
// and multiplies the two when called. They follow the definitions of src/cpu/activation.hpp within the bounds of
// gatefold_check: a relative error near 2^-20 max(1, |g|/8), NaN and infinities as there.
namespace gatefold::cuda {

namespace detail {

// e = exp(-|y|) turned into x * sigma(y). For y < 0, sigma(y) = e / (1 + e): unlike 1 / (1 + exp(-y)) it cannot
// overflow, and (x e) / (1 + e) stays exact in range down to where the result itself is subnormal.
__device__ __forceinline__ float times_sigmoid(float x, float e, bool negative) {
  const float reciprocal = ptx::rcp(1.0F + e);
  const float scaled = negative ? x * e : x;
  return scaled * reciprocal;
}

// exp(-magnitude * (high + low) * ln 2): the product is formed in two parts, because an absolute error of the exponent
// becomes a relative one of the result, and |exponent| 2^-24 would be too much where it reaches 100. ln 2 * remainder
// is below 2^-17, so its exponential is 1 + itself.
__device__ __forceinline__ float exp_of_product(float magnitude, float factor, float factor_low) {
  constexpr float ln2 = 0.693147181F;
  const float exponent = magnitude * factor;
  const float remainder = fmaf(magnitude, factor_low, fmaf(magnitude, factor, -exponent));
  const float e = ptx::ex2(-exponent);
  return fmaf(e, remainder * -ln2, e);
}

}  // namespace detail

template <ActivationKind kind>
struct GatedActivation;

template <>
struct GatedActivation<ActivationKind::silu> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float act(float g) {
    constexpr float log2_e = 1.44269504F;
    return detail::times_sigmoid(g, ptx::ex2(fabsf(g) * -log2_e), g < 0.0F);
  }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }
};

template <>
struct GatedActivation<ActivationKind::sigmoid> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float act(float g) {
    constexpr float log2_e = 1.44269504F;
    return detail::times_sigmoid(1.0F, ptx::ex2(fabsf(g) * -log2_e), g < 0.0F);
  }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }
};

// g/2 (1 + tanh z) = g sigma(2z), and 2z log2(e) = g (a + b g^2) with a = 2 sqrt(2/pi) log2(e), b = 0.044715 a. The
// polynomial is evaluated in two parts too: at g = -8 the exponent is 71.
template <>
struct GatedActivation<ActivationKind::gelu_tanh> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float act(float g) {
    constexpr double a = 2.30220819814432;
    constexpr double b = 0.10294323958002;
    constexpr auto a_high = static_cast<float>(a);
    constexpr auto a_low = static_cast<float>(a - static_cast<double>(a_high));
    constexpr auto b_high = static_cast<float>(b);
    constexpr auto b_low = static_cast<float>(b - static_cast<double>(b_high));
    const float magnitude = fminf(fabsf(g), 16.0F);  // the exponent there is 458: the exponential is 0 from 150 on
    const float square = magnitude * magnitude;
    const float square_low = fmaf(magnitude, magnitude, -square);
    const float cubic = square * b_high;
    const float cubic_low = fmaf(square_low, b_high, fmaf(square, b_low, fmaf(square, b_high, -cubic)));
    const float sum = a_high + cubic;
    const float cubic_part = sum - a_high;  // two-sum: what the addition lost
    const float lost = (a_high - (sum - cubic_part)) + (cubic - cubic_part);
    const float e = detail::exp_of_product(magnitude, sum, lost + (cubic_low + a_low));
    return detail::times_sigmoid(g, e, g < 0.0F);
  }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }
};

template <>
struct GatedActivation<ActivationKind::gelu_erf> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float act(float g) {
    constexpr float sqrt_half = 0.707106781F;
    return 0.5F * g * (1.0F + erff(g * sqrt_half));
  }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }
};

template <>
struct GatedActivation<ActivationKind::relu> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float act(float g) { return g < 0.0F ? 0.0F : g; }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }
};

template <>
struct GatedActivation<ActivationKind::identity> {
  explicit GatedActivation(const Activation& /*parameters*/) {}

  __device__ __forceinline__ static float act(float g) { return g; }
  __device__ __forceinline__ static float factor(float u) { return u; }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }
};

template <>
struct GatedActivation<ActivationKind::swiglu_clamped> {
  explicit GatedActivation(const Activation& parameters) : limit(parameters.limit), beta(parameters.beta) {
    constexpr double log2_e = 1.4426950408889634;
    const double scale = std::fmin(std::abs(static_cast<double>(parameters.alpha)) * log2_e, 0x1.fffffep127);
    scale_high = static_cast<float>(scale);
    scale_low = static_cast<float>(scale - static_cast<double>(scale_high));
    // Past an exponent of 256 the exponential is 0. Without an end an infinite g would make inf - inf of it.
    reach = static_cast<float>(std::fmin(256.0 / scale, 0x1.fffffep127));
    negative_alpha = parameters.alpha < 0.0F;
  }

  __device__ __forceinline__ float act(float g) const {
    const float clamped = g > limit ? limit : g;
    const float e = detail::exp_of_product(fminf(fabsf(clamped), reach), scale_high, scale_low);
    return detail::times_sigmoid(clamped, e, (clamped < 0.0F) != negative_alpha);
  }
  __device__ __forceinline__ float factor(float u) const {
    const float clamped = u < -limit ? -limit : (u > limit ? limit : u);
    return clamped + beta;
  }
  __device__ __forceinline__ float operator()(float g, float u) const { return act(g) * factor(u); }

  float limit, beta;
  float scale_high, scale_low;  // |alpha| log2(e)
  float reach;
  bool negative_alpha;
};

}  // namespace gatefold::cuda
