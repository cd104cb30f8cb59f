#pragma once

#include <math_constants.h>

namespace gatefold::cuda::sm90 {

// A sum of numbers in double precision that are not negative, rounded to fp32 with an exponent of its own, by integer
// and fp32 arithmetic alone: beside wgmma that runs without pause an instruction in double precision waits for the main
// loop's end. Infinity and NaN make it infinite or NaN.
class WideSum {
 public:
  __device__ explicit WideSum(double first) : exponent_(exponent_of(first)), sum_(scaled(first, exponent_)) {}

  template <int count>
  __device__ void add(const double (&terms)[count]) {
    int exponent = exponent_;
#pragma unroll
    for (int i = 0; i < count; ++i) exponent = max(exponent, exponent_of(terms[i]));
    float values[count];
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = scaled(terms[i], exponent);
#pragma unroll
    for (int step = 1; step < count; step *= 2) {
#pragma unroll
      for (int i = 0; i + step < count; i += 2 * step) values[i] += values[i + step];
    }
    sum_ = ldexpf(sum_, exponent_ - exponent) + values[0];
    exponent_ = exponent;
  }

  // 1 / sqrt(sum)
  __device__ float inverse_root() const {
    const int power = exponent_ - bias;
    const int half = power >> 1;
    const float x = (power & 1) != 0 ? 2.0F * sum_ : sum_;
    float y = rsqrtf(x);
    if (x > 0.0F && x < CUDART_INF_F) y = fmaf(0.5F * y, fmaf(-x * y, y, 1.0F), y);  // one step of Newton's
    return ldexpf(y, -half);
  }

 private:
  static constexpr int bias = 1023;

  static __device__ int exponent_of(double value) { return __double2hiint(value) >> 20 & 0x7ff; }

  // value / 2^(exponent - bias), to nearest; below 2^-126 of that it is 0.
  static __device__ float scaled(double value, int exponent) {
    const int high = __double2hiint(value);
    const auto low = static_cast<unsigned>(__double2loint(value));
    const int own = high >> 20 & 0x7ff;
    const unsigned fraction = (static_cast<unsigned>(high) & 0xfffffU) << 3 | low >> 29;
    if (own == 0x7ff) return (high & 0xfffff) == 0 && low == 0 ? CUDART_INF_F : CUDART_NAN_F;
    const int in_fp32 = own - exponent + 127;
    if (own == 0 || in_fp32 <= 0) return 0.0F;
    return __uint_as_float((static_cast<unsigned>(in_fp32) << 23 | fraction) + (low >> 28 & 1U));
  }

  int exponent_;
  float sum_;
};

}  // namespace gatefold::cuda::sm90
