#include "cpu/vector_math.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/float16.hpp"
#include "cpu/copies.hpp"

#if GATEFOLD_HAS_COPIES
#include <immintrin.h>
#endif

// The compiler does the vectorising; only fp16 needs its conversion instruction named.
namespace gatefold::cpu {
namespace {

// ---- exp and the logistic function ----------------------------------------------------------------------------------

constexpr float to_integer = 0x1.8p23F;     // added to |n| < 2^22, leaves n in the lowest mantissa bits
constexpr double to_integer_64 = 0x1.8p52;  // the same in double precision
constexpr float lowest_exponent = -120.0F;  // exp of it is 0, even as a subnormal
constexpr float log2_e = 1.44269504088896341F;
constexpr float ln2_high = 0.693359375F;  // 9 bits: n * ln2_high is exact
constexpr float ln2_low = -2.12194440054690583e-4F;

// e^r 2^n for |r| <= ln(2) / 2 and integral n >= -174. The first term left out of the series is r^8 / 8! < 2^-27. Two
// factors of 2^(n/2): one alone would be no normal number where the result is subnormal.
GATEFOLD_INLINE float scaled_exp(float r, float n) {
  float series = 1.0F / 5040.0F;
  series = series * r + 1.0F / 720.0F;
  series = series * r + 1.0F / 120.0F;
  series = series * r + 1.0F / 24.0F;
  series = series * r + 1.0F / 6.0F;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  const auto exponent = std::bit_cast<std::int32_t>(n + to_integer) - std::bit_cast<std::int32_t>(to_integer);
  const std::int32_t half = exponent >> 1;
  const auto power = [](std::int32_t e) { return std::bit_cast<float>((static_cast<std::uint32_t>(e) + 127U) << 23); };
  return series * power(half) * power(exponent - half);
}

// e^a for a <= 0. NaN stays NaN: it fails the comparison, and the series carries it.
GATEFOLD_INLINE float exp_of_negative(float a) {
  a = a < lowest_exponent ? lowest_exponent : a;
  const float n = (a * log2_e + to_integer) - to_integer;
  return scaled_exp((a - n * ln2_high) - n * ln2_low, n);
}

// The same for an argument whose rounding to fp32 would show: exp turns its absolute error into a relative one.
GATEFOLD_INLINE float exp_of_negative(double a) {
  a = a < static_cast<double>(lowest_exponent) ? static_cast<double>(lowest_exponent) : a;
  const double n = (a * 1.44269504088896340736 + to_integer_64) - to_integer_64;
  return scaled_exp(static_cast<float>(a - n * 0.69314718055994530942), static_cast<float>(n));
}

// From e^-|z|, which can't overflow: 1 / (1 + e^-z), or e^z / (1 + e^z).
template <class Real>
GATEFOLD_INLINE float sigmoid(Real z) {
  const float e = exp_of_negative(-std::abs(z));
  return (z < Real{0} ? e : 1.0F) / (1.0F + e);
}

// ---- activations ----------------------------------------------------------------------------------------------------

GATEFOLD_INLINE float gelu_tanh(float g) {
  constexpr double two_sqrt_2_over_pi = 2.0 * 0.79788456080286535588;
  const double x = g;
  return g * sigmoid(two_sqrt_2_over_pi * (x + 0.044715 * x * x * x));
}

// erfc by formula 7.1.26 of Abramowitz and Stegun, whose absolute error is below 1.5e-7. The sum loses nothing to
// cancellation for g < 0, because erfc itself is what is approximated.
GATEFOLD_INLINE float gelu_erf(float g) {
  const float a = std::abs(g) * 0.70710678118654752440F;
  const float t = 1.0F / (1.0F + 0.3275911F * a);
  float series = 1.061405429F;
  series = series * t - 1.453152027F;
  series = series * t + 1.421413741F;
  series = series * t - 0.284496736F;
  series = series * t + 0.254829592F;
  const float erfc = series * t * exp_of_negative(-a * a);
  return 0.5F * g * (g < 0.0F ? erfc : 2.0F - erfc);
}

GATEFOLD_INLINE float clamped_swish(float g, float limit, float alpha) {
  const float clamped = g > limit ? limit : g;
  return clamped * sigmoid(static_cast<double>(alpha) * static_cast<double>(clamped));
}

template <class Function>
GATEFOLD_INLINE void transform(const float* in, std::int64_t count, float* out, Function function) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = function(in[i]);
}

GATEFOLD_INLINE void activate_loop(const Activation& act, const float* gate, std::int64_t count, float* out) {
  const float limit = act.limit;
  const float alpha = act.alpha;
  switch (act.kind) {
    case ActivationKind::silu: return transform(gate, count, out, [](float g) { return g * sigmoid(g); });
    case ActivationKind::gelu_tanh: return transform(gate, count, out, [](float g) { return gelu_tanh(g); });
    case ActivationKind::gelu_erf: return transform(gate, count, out, [](float g) { return gelu_erf(g); });
    case ActivationKind::relu: return transform(gate, count, out, [](float g) { return g < 0.0F ? 0.0F : g; });
    case ActivationKind::sigmoid: return transform(gate, count, out, [](float g) { return sigmoid(g); });
    case ActivationKind::swiglu_clamped:
      return transform(gate, count, out, [=](float g) { return clamped_swish(g, limit, alpha); });
    case ActivationKind::identity:
    case ActivationKind::none: break;
  }
  if (out != gate) std::copy_n(gate, count, out);
}

GATEFOLD_INLINE void multiply_loop(const Activation& act, const float* activated, const float* up, std::int64_t count,
                                   float* out) {
  if (act.kind != ActivationKind::swiglu_clamped) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) out[i] = activated[i] * up[i];
    return;
  }
  const float limit = act.limit;
  const float beta = act.beta;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float above = up[i] > limit ? limit : up[i];
    out[i] = activated[i] * ((above < -limit ? -limit : above) + beta);
  }
}

// ---- conversions ----------------------------------------------------------------------------------------------------

GATEFOLD_INLINE std::uint16_t load_bits(const std::byte* in, std::int64_t i) {
  std::uint16_t bits;
  std::memcpy(&bits, in + i * 2, 2);
  return bits;
}

GATEFOLD_INLINE void store_bits(std::byte* out, std::int64_t i, std::uint16_t bits) {
  std::memcpy(out + i * 2, &bits, 2);
}

GATEFOLD_INLINE void widen_bf16(const std::byte* in, std::int64_t count, float* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(load_bits(in, i));
}

GATEFOLD_INLINE void narrow_bf16(const float* in, std::int64_t count, std::byte* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    store_bits(out, i, static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : rounded));
  }
}

GATEFOLD_INLINE void widen_fp16(const std::byte* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = fp16_to_float(load_bits(in, i));
}

GATEFOLD_INLINE void narrow_fp16(const float* in, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) store_bits(out, i, float_to_fp16(in[i]));
}

// ---- the copies -----------------------------------------------------------------------------------------------------

// The loops for one instruction set.
struct Copies {
  void (*widen_bf16)(const std::byte* in, std::int64_t count, float* out);
  void (*widen_fp16)(const std::byte* in, std::int64_t count, float* out);
  void (*narrow_bf16)(const float* in, std::int64_t count, std::byte* out);
  void (*narrow_fp16)(const float* in, std::int64_t count, std::byte* out);
  void (*activate)(const Activation& act, const float* gate, std::int64_t count, float* out);
  void (*multiply)(const Activation& act, const float* activated, const float* up, std::int64_t count, float* out);
};

struct Portable {
  static void widen_bf16(const std::byte* in, std::int64_t count, float* out) { cpu::widen_bf16(in, count, out); }
  static void widen_fp16(const std::byte* in, std::int64_t count, float* out) { cpu::widen_fp16(in, count, out); }
  static void narrow_bf16(const float* in, std::int64_t count, std::byte* out) { cpu::narrow_bf16(in, count, out); }
  static void narrow_fp16(const float* in, std::int64_t count, std::byte* out) { cpu::narrow_fp16(in, count, out); }
  static void activate(const Activation& act, const float* gate, std::int64_t count, float* out) {
    activate_loop(act, gate, count, out);
  }
  static void multiply(const Activation& act, const float* activated, const float* up, std::int64_t count, float* out) {
    multiply_loop(act, activated, up, count, out);
  }
};

template <class Set>
constexpr Copies copies_of() {
  return {Set::widen_bf16, Set::widen_fp16, Set::narrow_bf16, Set::narrow_fp16, Set::activate, Set::multiply};
}

#if GATEFOLD_HAS_COPIES

struct Avx2 {
  GATEFOLD_AVX2 static void widen_bf16(const std::byte* in, std::int64_t count, float* out) {
    cpu::widen_bf16(in, count, out);
  }
  GATEFOLD_AVX2 static void narrow_bf16(const float* in, std::int64_t count, std::byte* out) {
    cpu::narrow_bf16(in, count, out);
  }
  GATEFOLD_AVX2 static void widen_fp16(const std::byte* in, std::int64_t count, float* out) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * 2));
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(bits));
    }
    cpu::widen_fp16(in + i * 2, count - i, out + i);
  }
  GATEFOLD_AVX2 static void narrow_fp16(const float* in, std::int64_t count, std::byte* out) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * 2), bits);
    }
    cpu::narrow_fp16(in + i, count - i, out + i * 2);
  }
  GATEFOLD_AVX2 static void activate(const Activation& act, const float* gate, std::int64_t count, float* out) {
    activate_loop(act, gate, count, out);
  }
  GATEFOLD_AVX2 static void multiply(const Activation& act, const float* activated, const float* up, std::int64_t count,
                                     float* out) {
    multiply_loop(act, activated, up, count, out);
  }
};

// fp16's conversions are AVX2's: they wait for memory.
struct Avx512 : Avx2 {
  GATEFOLD_AVX512 static void narrow_bf16(const float* in, std::int64_t count, std::byte* out) {
    cpu::narrow_bf16(in, count, out);
  }
  GATEFOLD_AVX512 static void activate(const Activation& act, const float* gate, std::int64_t count, float* out) {
    activate_loop(act, gate, count, out);
  }
  GATEFOLD_AVX512 static void multiply(const Activation& act, const float* activated, const float* up,
                                       std::int64_t count, float* out) {
    multiply_loop(act, activated, up, count, out);
  }
};

Copies find_copies() {
  if (features().avx512) return copies_of<Avx512>();
  return features().avx2 ? copies_of<Avx2>() : copies_of<Portable>();
}

#else

Copies find_copies() { return copies_of<Portable>(); }

#endif

const Copies& copies() {
  static const Copies found = find_copies();
  return found;
}

}  // namespace

void widen(const std::byte* in, DType dtype, std::int64_t count, float* out) {
  switch (dtype) {
    case DType::fp32: std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float)); break;
    case DType::fp16: copies().widen_fp16(in, count, out); break;
    case DType::bf16: copies().widen_bf16(in, count, out); break;
  }
}

void narrow(const float* in, DType dtype, std::int64_t count, std::byte* out) {
  switch (dtype) {
    case DType::fp32: std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(float)); break;
    case DType::fp16: copies().narrow_fp16(in, count, out); break;
    case DType::bf16: copies().narrow_bf16(in, count, out); break;
  }
}

void activate(const Activation& activation, const float* gate, std::int64_t count, float* out) {
  copies().activate(activation, gate, count, out);
}

void multiply(const Activation& activation, const float* activated, const float* up, std::int64_t count, float* out) {
  copies().multiply(activation, activated, up, count, out);
}

}  // namespace gatefold::cpu
