#pragma once

#include <immintrin.h>

#include "cpu/loops/nest.hpp"

// What the policies of AVX-512 share: sums in 16 lanes, and how they are folded.
namespace gatefold::cpu {
namespace {

struct Avx512Sums {
  using Vector = __m512;
  static constexpr int lanes = 16;
  static constexpr bool parts_share_words = false;
  static constexpr int tile_tokens = 6;
  static constexpr int streamed_tokens = 6;
  static constexpr int widened_tokens = tile_tokens;
  static constexpr std::int64_t widened_cache = widened_in_2_mib;

  static GATEFOLD_LOOP Vector zero() { return _mm512_setzero_ps(); }
  static GATEFOLD_LOOP void store(float* out, __m512 values) { _mm512_storeu_ps(out, values); }
  static GATEFOLD_LOOP __m512 load_widened(const float* x) { return _mm512_loadu_ps(x); }

  // The fold: of each of 16 lanes the sum, halves first, then quarters, pairs and neighbours. Two accumulators' halves
  // (or pairs) are exchanged by one shuffle and a blend, which other units do, not by two shuffles.
  //
  // Quarters of a and b: a0 + a2, a1 + a3, b2 + b0, b3 + b1.
  static GATEFOLD_LOOP __m512 add_halves(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_mask_blend_ps(0xff00, a, b), _mm512_shuffle_f32x4(a, b, 0x4e));
  }
  // Of two such: a quarter for each of four.
  static GATEFOLD_LOOP __m512 add_quarters(__m512 ab, __m512 cd) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  }
  // In each quarter: a0 + a2, a1 + a3, b2 + b0, b3 + b1.
  static GATEFOLD_LOOP __m512 add_pairs(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps(a, b, 0x4e));
  }
  // Of two such: one sum of each of four.
  static GATEFOLD_LOOP __m512 add_neighbours(__m512 ab, __m512 cd) {
    return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x88), _mm512_shuffle_ps(ab, cd, 0xdd));
  }

  template <int tokens>
  static GATEFOLD_LOOP void add_folded(__m512 folded, float* out, bool first) {
    constexpr auto used = static_cast<__mmask16>((1U << (4 * tokens)) - 1U);
    _mm512_mask_storeu_ps(out, used, first ? folded : _mm512_add_ps(folded, _mm512_maskz_loadu_ps(used, out)));
  }

  // Three or four tokens' sums: out[token][row].
  template <int tokens>
  static GATEFOLD_LOOP void add_four(const Vector (*sums)[tile_rows_of], float* out, bool first) {
    __m512 row[tile_rows_of];  // a quarter for each token
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) {
      row[r] = add_quarters(add_halves(sums[0][r], sums[1][r]), add_halves(sums[2][r], sums[tokens > 3 ? 3 : 2][r]));
    }
    add_folded<tokens>(add_neighbours(add_pairs(row[0], row[1]), add_pairs(row[2], row[3])), out, first);
  }

  // One or two tokens' sums.
  template <int tokens>
  static GATEFOLD_LOOP void add_two(const Vector (*sums)[tile_rows_of], float* out, bool first) {
    __m512 half[tile_rows_of];  // a half for each token
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) half[r] = add_halves(sums[0][r], sums[tokens - 1][r]);
    // Quarters of both rows of a pair, then in each: a row of the first pair, and one of the second.
    const __m512 pairs = add_pairs(add_quarters(half[0], half[1]), add_quarters(half[2], half[3]));
    const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    add_folded<tokens>(_mm512_permutexvar_ps(order, add_neighbours(pairs, pairs)), out, first);
  }

  template <int tokens>
  static GATEFOLD_LOOP void add_sums(const Vector (&sums)[tokens][tile_rows_of], float* out, bool first) {
    if constexpr (tokens <= 2) {
      add_two<tokens>(sums, out, first);
    } else {
      add_four<(tokens < 4 ? tokens : 4)>(sums, out, first);
    }
    if constexpr (tokens > 4) add_two<tokens - 4>(sums + 4, out + 4 * tile_rows_of, first);
  }
};

}  // namespace
}  // namespace gatefold::cpu
