#pragma once

#include <immintrin.h>

#include "cpu/loops/nest.hpp"

namespace gatefold::cpu {
namespace {

// 16 x 16 words of any kind: rows become columns.
GATEFOLD_LOOP void transpose(__m512 (&v)[16]) {
  __m512 quads[16];  // of four rows the columns j, j + 4, j + 8 and j + 12
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
    const __m512 low01 = _mm512_unpacklo_ps(v[q], v[q + 1]);
    const __m512 high01 = _mm512_unpackhi_ps(v[q], v[q + 1]);
    const __m512 low23 = _mm512_unpacklo_ps(v[q + 2], v[q + 3]);
    const __m512 high23 = _mm512_unpackhi_ps(v[q + 2], v[q + 3]);
    quads[q] = _mm512_shuffle_ps(low01, low23, 0x44);
    quads[q + 1] = _mm512_shuffle_ps(low01, low23, 0xee);
    quads[q + 2] = _mm512_shuffle_ps(high01, high23, 0x44);
    quads[q + 3] = _mm512_shuffle_ps(high01, high23, 0xee);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512 low_ab = _mm512_shuffle_f32x4(quads[j], quads[j + 4], 0x44);
    const __m512 high_ab = _mm512_shuffle_f32x4(quads[j], quads[j + 4], 0xee);
    const __m512 low_cd = _mm512_shuffle_f32x4(quads[j + 8], quads[j + 12], 0x44);
    const __m512 high_cd = _mm512_shuffle_f32x4(quads[j + 8], quads[j + 12], 0xee);
    v[j] = _mm512_shuffle_f32x4(low_ab, low_cd, 0x88);
    v[j + 4] = _mm512_shuffle_f32x4(low_ab, low_cd, 0xdd);
    v[j + 8] = _mm512_shuffle_f32x4(high_ab, high_cd, 0x88);
    v[j + 12] = _mm512_shuffle_f32x4(high_ab, high_cd, 0xdd);
  }
}

}  // namespace
}  // namespace gatefold::cpu
