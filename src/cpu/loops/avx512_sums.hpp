#pragma once

#include <immintrin.h>

#include "cpu/loops/nest.hpp"

// What the policies of AVX-512 share: sums in 16 lanes, and how they are folded.
namespace gatefold::cpu {
namespace {

struct Avx512Sums {
  using Vector = __m512;
  static constexpr int lanes = 16;
  static constexpr int tile_tokens = 6;

  static GATEFOLD_LOOP Vector zero() { return _mm512_setzero_ps(); }
  static GATEFOLD_LOOP void store(float* out, __m512 values) { _mm512_storeu_ps(out, values); }
  static GATEFOLD_LOOP __m512 load_widened(const float* x) { return _mm512_loadu_ps(x); }

  // Quarters of a and b: a0 + a2, a1 + a3, b0 + b2, b1 + b3.
  static GATEFOLD_LOOP __m512 add_halves(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  // Of two such: a quarter for each of four.
  static GATEFOLD_LOOP __m512 add_quarters(__m512 ab, __m512 cd) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  }

  // Up to four tokens' sums: out[token][row].
  template <int tokens>
  static GATEFOLD_LOOP void add_group(const Vector (*sums)[tile_rows_of], float* out, bool first) {
    __m512 row[tile_rows_of];  // a quarter for each token
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) {
      const __m512 two = add_halves(sums[0][r], sums[tokens > 1 ? 1 : 0][r]);
      const __m512 more = tokens > 2 ? add_halves(sums[tokens > 2 ? 2 : 0][r], sums[tokens > 3 ? 3 : 0][r]) : two;
      row[r] = add_quarters(two, more);
    }
    const __m512 pairs01 = _mm512_add_ps(_mm512_unpacklo_ps(row[0], row[1]), _mm512_unpackhi_ps(row[0], row[1]));
    const __m512 pairs23 = _mm512_add_ps(_mm512_unpacklo_ps(row[2], row[3]), _mm512_unpackhi_ps(row[2], row[3]));
    const __m512 folded =
        _mm512_add_ps(_mm512_shuffle_ps(pairs01, pairs23, 0x44), _mm512_shuffle_ps(pairs01, pairs23, 0xee));
    constexpr auto used = static_cast<__mmask16>((1U << (4 * tokens)) - 1U);
    _mm512_mask_storeu_ps(out, used, first ? folded : _mm512_add_ps(folded, _mm512_maskz_loadu_ps(used, out)));
  }

  template <int tokens>
  static GATEFOLD_LOOP void add_sums(const Vector (&sums)[tokens][tile_rows_of], float* out, bool first) {
    add_group<(tokens < 4 ? tokens : 4)>(sums, out, first);
    if constexpr (tokens > 4) add_group<tokens - 4>(sums + 4, out + 4 * tile_rows_of, first);
  }
};

}  // namespace
}  // namespace gatefold::cpu
