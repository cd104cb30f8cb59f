#pragma once

#include "cpu/loops/amx_tiles.hpp"
#include "cpu/loops/avx512_transpose.hpp"

// x for the matrix unit, packed once for a run:
//
//   for each block of k
//     for each group of 16 tokens           so that a panel's tokens lie one after the other; whole rows would lie a
//       for each step of 32 elements        power of two apart, and more than 16 of them meet in one set of the
//         for each part of the elements     second-level cache
//           16 pairs x 16 tokens
//
// Of an operand type it takes: Element; `parts`, bf16 numbers whose sum an element is; `block`, elements of k; split, a
// step's elements in vectors of pairs, of which `left` are there and zeros follow. x and weights are split alike, so it
// doesn't matter which elements a pair has.
namespace gatefold::cpu {
namespace {

template <class Type>
constexpr std::int64_t steps_from(std::int64_t k, std::int64_t depth) {
  return steps_of(depth - k < Type::block ? depth - k : Type::block);
}

// Where a group's tiles of the block at k begin.
template <class Type>
GATEFOLD_LOOP std::byte* packed_at(const PackedX& packed, std::int64_t k, std::int64_t group, std::int64_t depth) {
  return packed.base + (k / step * packed.groups + group * steps_from<Type>(k, depth)) * Type::parts * tile_bytes;
}

// One group of up to 16 tokens. Past the last token and the last element come zeros.
template <class Type>
void pack_tokens(const TokenPack& p) {
  for (std::int64_t k = 0; k < p.depth; k += step) {
    __m512 pairs[Type::parts][16];
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) {
      __m512i parts[Type::parts] = {};
      if (t < p.tokens) {
        Type::split(reinterpret_cast<const typename Type::Element*>(p.x + t * p.x_stride) + k, p.depth - k, parts);
      }
      for (int part = 0; part < Type::parts; ++part) pairs[part][t] = _mm512_castsi512_ps(parts[part]);
    }
    std::byte* out = packed_at<Type>(p.packed, k / Type::block * Type::block, p.group, p.depth) +
                     k % Type::block / step * Type::parts * tile_bytes;
    for (int part = 0; part < Type::parts; ++part, out += tile_bytes) {
      transpose(pairs[part]);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < 16; ++i) _mm512_store_ps(out + i * 64, pairs[part][i]);
    }
  }
}

template <class Type>
std::int64_t packed_bytes(std::int64_t depth) {
  return steps_of(depth) * Type::parts * tile_bytes;
}

}  // namespace
}  // namespace gatefold::cpu
