#pragma once

#include <algorithm>
#include <cmath>

#include "core/types.hpp"

// The activations in double precision: the definitions that every other implementation is held against.
namespace gatefold::cpu {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// NaN stays NaN: std::min and std::clamp would let a NaN limit or a NaN value through by argument order.
inline double clamp_above(double x, double limit) { return x > limit ? limit : x; }
inline double clamp_both(double x, double limit) { return x < -limit ? -limit : clamp_above(x, limit); }

// act(g); for swiglu_clamped g' * sigma(alpha g').
inline double activate(const Activation& act, double g) {
  constexpr double sqrt_half = 0.70710678118654752440;
  constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  switch (act.kind) {
    case ActivationKind::silu: return g * sigmoid(g);
    case ActivationKind::gelu_tanh: return g * sigmoid(2.0 * sqrt_2_over_pi * (g + 0.044715 * g * g * g));
    case ActivationKind::gelu_erf: return 0.5 * g * std::erfc(-g * sqrt_half);
    case ActivationKind::relu: return g < 0.0 ? 0.0 : g;
    case ActivationKind::sigmoid: return sigmoid(g);
    case ActivationKind::identity: return g;
    case ActivationKind::swiglu_clamped: {
      const double clamped = clamp_above(g, act.limit);
      return clamped * sigmoid(act.alpha * clamped);
    }
    case ActivationKind::none: break;
  }
  return g;
}

// The z of the e^z that act(g) is made of, for g < 0; 0 where there is none.
inline double exponent(const Activation& act, double g) {
  constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  switch (act.kind) {
    case ActivationKind::silu:
    case ActivationKind::sigmoid: return g;
    case ActivationKind::gelu_tanh: return 2.0 * sqrt_2_over_pi * (g + 0.044715 * g * g * g);
    case ActivationKind::gelu_erf: return g < 0.0 ? -0.5 * g * g : 0.0;  // erfc(x) ~ e^(-x^2) / x
    case ActivationKind::swiglu_clamped: return act.alpha * clamp_above(g, act.limit);
    case ActivationKind::relu:
    case ActivationKind::identity:
    case ActivationKind::none: break;
  }
  return 0.0;
}

// What act(g) is multiplied by: up, or for swiglu_clamped u' + beta.
inline double linear_factor(const Activation& act, double u) {
  return act.kind == ActivationKind::swiglu_clamped ? clamp_both(u, act.limit) + act.beta : u;
}

// A number that |act(a) - act(b)| / |a - b| never exceeds. silu's slope peaks at 1.0998 (g = 2.40), gelu's at 1.1290
// (g = 1.41, both forms); scaling g inside sigma moves silu's peak but not its height.
inline double largest_slope(const Activation& act) {
  switch (act.kind) {
    case ActivationKind::silu:
    case ActivationKind::swiglu_clamped: return 1.1;
    case ActivationKind::gelu_tanh:
    case ActivationKind::gelu_erf: return 1.13;
    case ActivationKind::sigmoid: return 0.25;
    case ActivationKind::relu:
    case ActivationKind::identity:
    case ActivationKind::none: break;
  }
  return 1.0;
}

}  // namespace gatefold::cpu
