#pragma once

#include <immintrin.h>

#include "cpu/loops/nest.hpp"

// x for the matrix unit, packed once for a run:
//
//   for each block of 256 elements
//     for each group of 16 tokens           so that a panel's tokens lie one after the other; whole rows would lie a
//       for each step of 32 elements        power of two apart, and more than 16 of them meet in one set of the
//         16 pairs x 16 tokens              second-level cache
namespace gatefold::cpu {
namespace {

using Bits = std::uint16_t;

constexpr std::int64_t side = 16;  // of a tile: rows, tokens, or pairs
constexpr std::int64_t step = 32;  // elements of a row that a tile holds
constexpr std::int64_t tile_bytes = 1024;
constexpr std::int64_t block = 256;  // elements: 8 KiB of x for 16 tokens, 16 KiB of 32 rows

constexpr std::int64_t groups_of(std::int64_t count) { return (count + side - 1) / side; }
constexpr std::int64_t steps_of(std::int64_t depth) { return (depth + step - 1) / step; }
constexpr std::int64_t steps_from(std::int64_t k, std::int64_t depth) {
  return steps_of(depth - k < block ? depth - k : block);
}

// Where a group's tiles of the block at k begin.
GATEFOLD_LOOP std::byte* packed_at(const PackedX& packed, std::int64_t k, std::int64_t group, std::int64_t depth) {
  return packed.base + (k / step * packed.groups + group * steps_from(k, depth)) * tile_bytes;
}

// A step's elements, of which `left` are there.
GATEFOLD_LOOP __m512i load_elements(const Bits* from, std::int64_t left) {
  return _mm512_maskz_loadu_epi16(left < step ? (std::uint32_t{1} << left) - 1U : ~std::uint32_t{0}, from);
}

GATEFOLD_LOOP __m512i unpack_low(__m512i a, __m512i b) { return _mm512_unpacklo_epi32(a, b); }
GATEFOLD_LOOP __m512i unpack_high(__m512i a, __m512i b) { return _mm512_unpackhi_epi32(a, b); }

// 16 x 16 words, rows to columns.
GATEFOLD_LOOP void turn_words(__m512i (&v)[16]) {
  __m512i a[16];
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
    const __m512i low01 = unpack_low(v[q], v[q + 1]);
    const __m512i high01 = unpack_high(v[q], v[q + 1]);
    const __m512i low23 = unpack_low(v[q + 2], v[q + 3]);
    const __m512i high23 = unpack_high(v[q + 2], v[q + 3]);
    a[q] = _mm512_unpacklo_epi64(low01, low23);  // of four rows the words 0, 4, 8 and 12, a quarter each
    a[q + 1] = _mm512_unpackhi_epi64(low01, low23);
    a[q + 2] = _mm512_unpacklo_epi64(high01, high23);
    a[q + 3] = _mm512_unpackhi_epi64(high01, high23);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i low_ab = _mm512_shuffle_i32x4(a[j], a[j + 4], 0x44);
    const __m512i high_ab = _mm512_shuffle_i32x4(a[j], a[j + 4], 0xee);
    const __m512i low_cd = _mm512_shuffle_i32x4(a[j + 8], a[j + 12], 0x44);
    const __m512i high_cd = _mm512_shuffle_i32x4(a[j + 8], a[j + 12], 0xee);
    v[j] = _mm512_shuffle_i32x4(low_ab, low_cd, 0x88);
    v[j + 4] = _mm512_shuffle_i32x4(low_ab, low_cd, 0xdd);
    v[j + 8] = _mm512_shuffle_i32x4(high_ab, high_cd, 0x88);
    v[j + 12] = _mm512_shuffle_i32x4(high_ab, high_cd, 0xdd);
  }
}

// One group of up to 16 tokens. Past the last token and the last element come zeros.
void pack_tokens(const TokenPack& p) {
  for (std::int64_t k = 0; k < p.depth; k += step) {
    __m512i words[16];
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) {
      words[t] = t < p.tokens ? load_elements(reinterpret_cast<const Bits*>(p.x + t * p.x_stride) + k, p.depth - k)
                              : _mm512_setzero_si512();
    }
    turn_words(words);
    std::byte* out = packed_at(p.packed, k / block * block, p.group, p.depth) + k % block / step * tile_bytes;
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < 16; ++i) _mm512_store_si512(out + i * 64, words[i]);
  }
}

std::int64_t packed_bytes(std::int64_t depth) { return steps_of(depth) * tile_bytes; }

}  // namespace
}  // namespace gatefold::cpu
