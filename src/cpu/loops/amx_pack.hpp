#pragma once

#include <immintrin.h>

#include "cpu/loops/avx512_transpose.hpp"

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

// One group of up to 16 tokens. Past the last token and the last element come zeros.
void pack_tokens(const TokenPack& p) {
  for (std::int64_t k = 0; k < p.depth; k += step) {
    __m512 pairs[16];
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) {
      pairs[t] = t >= p.tokens ? _mm512_setzero_ps()
                               : _mm512_castsi512_ps(load_elements(
                                     reinterpret_cast<const Bits*>(p.x + t * p.x_stride) + k, p.depth - k));
    }
    transpose(pairs);
    std::byte* out = packed_at(p.packed, k / block * block, p.group, p.depth) + k % block / step * tile_bytes;
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < 16; ++i) _mm512_store_ps(out + i * 64, pairs[i]);
  }
}

std::int64_t packed_bytes(std::int64_t depth) { return steps_of(depth) * tile_bytes; }

}  // namespace
}  // namespace gatefold::cpu
