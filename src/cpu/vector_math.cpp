#include "cpu/vector_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/float16.hpp"
#include "cpu/copies.hpp"
#include "numbers/exp.hpp"

#if GATEFOLD_HAS_COPIES
#include <immintrin.h>
#endif

// The compiler does the vectorising; only fp16 needs its conversion instruction named.
namespace gatefold::cpu {
namespace {

using numbers::exp_of_negative;
using numbers::sigmoid;

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
  for (std::int64_t i = 0; i < count; ++i) store_bits(out, i, float_to_bf16(in[i]));
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
    case DType::fp32:
      if (out != reinterpret_cast<const std::byte*>(in))
        std::memmove(out, in, static_cast<std::size_t>(count) * sizeof(float));
      break;
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
