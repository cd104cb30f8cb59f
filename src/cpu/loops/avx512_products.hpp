#pragma once

#include "cpu/loops/avx512_sums.hpp"

// The policies of fp32, fp16 and bf16 by AVX-512's products of fp32: F, BW, DQ and VL, which came together.
namespace gatefold::cpu {
namespace {

// What the types have in common: they are multiplied in fp32.
struct Fp32Products : Avx512Sums {
  using Operand = __m512;
  static constexpr int pairs = 1;

  static GATEFOLD_LOOP Vector multiply_add(Operand a, Operand b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
};

struct Float : Fp32Products {
  using Element = float;
  static constexpr bool in_place = true;
  static constexpr int parts = 1;
  static constexpr std::int64_t step = 16;
  static constexpr std::int64_t k_block = 1024;

  static GATEFOLD_LOOP Operand load(const float* from, int /*part*/) { return _mm512_loadu_ps(from); }
  static GATEFOLD_LOOP Operand load_rest(const float* from, int /*part*/, int count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), from);
  }
};

// One conversion of a row's step serves six tokens.
struct Fp16 : Fp32Products {
  using Element = std::uint16_t;
  static constexpr bool in_place = false;
  static constexpr int parts = 1;
  static constexpr std::int64_t step = 16;
  static constexpr std::int64_t k_block = 1024;

  static GATEFOLD_LOOP Operand load(const Element* from, int /*part*/) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static GATEFOLD_LOOP Operand load_rest(const Element* from, int /*part*/, int count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1U << count) - 1U), from));
  }
};

// Two bf16 share a word: the first becomes an fp32 by a shift, the second by a mask.
struct BFloat : Fp32Products {
  using Element = std::uint16_t;
  static constexpr bool in_place = false;
  static constexpr int parts = 2;
  static constexpr bool parts_share_words = true;
  static constexpr std::int64_t step = 32;
  static constexpr std::int64_t k_block = 1024;

  static GATEFOLD_LOOP Operand widen(__m512i words, int part) {
    return _mm512_castsi512_ps(part == 0 ? _mm512_slli_epi32(words, 16)
                                         : _mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  static GATEFOLD_LOOP Operand load(const Element* from, int part) { return widen(_mm512_loadu_si512(from), part); }
  static GATEFOLD_LOOP Operand load_rest(const Element* from, int part, int count) {
    return widen(_mm512_maskz_loadu_epi16((std::uint32_t{1} << count) - 1U, from), part);
  }
};

}  // namespace
}  // namespace gatefold::cpu
