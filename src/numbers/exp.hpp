#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// The exponential of numbers that are not positive, and the logistic function, in straight lines: loops over them
// become vector code where selections need no branch (-fno-trapping-math).
namespace gatefold::numbers {

inline constexpr float to_integer = 0x1.8p23F;     // added to |n| < 2^22, leaves n in the lowest mantissa bits
inline constexpr double to_integer_64 = 0x1.8p52;  // the same in double precision
inline constexpr float lowest_exponent = -120.0F;  // exp of it is 0, even as a subnormal
inline constexpr float log2_e = 1.44269504088896341F;
inline constexpr float ln2_high = 0.693359375F;  // 9 bits: n * ln2_high is exact
inline constexpr float ln2_low = -2.12194440054690583e-4F;

// e^r 2^n for |r| <= ln(2) / 2 and integral n >= -174. The first term left out of the series is r^8 / 8! < 2^-27. Two
// factors of 2^(n/2): one alone would be no normal number where the result is subnormal.
[[gnu::always_inline]] inline float scaled_exp(float r, float n) {
  float series = 1.0F / 5040.0F;
  series = series * r + 1.0F / 720.0F;
  series = series * r + 1.0F / 120.0F;
  series = series * r + 1.0F / 24.0F;
  series = series * r + 1.0F / 6.0F;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  const auto exponent = std::bit_cast<std::int32_t>(n + to_integer) - std::bit_cast<std::int32_t>(to_integer);
  const std::int32_t lower = exponent >> 1;
  const auto power = [](std::int32_t e) { return std::bit_cast<float>((static_cast<std::uint32_t>(e) + 127U) << 23); };
  return series * power(lower) * power(exponent - lower);
}

// e^a for a <= 0. NaN stays NaN: it fails the comparison, and the series carries it.
[[gnu::always_inline]] inline float exp_of_negative(float a) {
  a = a < lowest_exponent ? lowest_exponent : a;
  const float n = (a * log2_e + to_integer) - to_integer;
  return scaled_exp((a - n * ln2_high) - n * ln2_low, n);
}

// The same for an argument whose rounding to fp32 would show: exp turns its absolute error into a relative one.
[[gnu::always_inline]] inline float exp_of_negative(double a) {
  a = a < static_cast<double>(lowest_exponent) ? static_cast<double>(lowest_exponent) : a;
  const double n = (a * 1.44269504088896340736 + to_integer_64) - to_integer_64;
  return scaled_exp(static_cast<float>(a - n * 0.69314718055994530942), static_cast<float>(n));
}

// From e^-|z|, which can't overflow: 1 / (1 + e^-z), or e^z / (1 + e^z).
template <class Real>
[[gnu::always_inline]] inline float sigmoid(Real z) {
  const float e = exp_of_negative(-std::abs(z));
  return (z < Real{0} ? e : 1.0F) / (1.0F + e);
}

}  // namespace gatefold::numbers
