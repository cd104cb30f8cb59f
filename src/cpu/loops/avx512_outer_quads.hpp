#pragma once

#include "cpu/loops/avx512_outer_pack.hpp"

// h packed as avx512_outer_pack.hpp packs x, from where a panel has left it: four columns of a token side by side, a
// quad, and those of the next token behind them.
//
//   quads, bf16   [t0: 0 1][t1: 0 1][t2: 0 1] ..  words of 32 bits, two to a quad (fp32: four)
//   packed        lane of word 0: [t0][t1][t2] .. 6 tokens      lane of word 1: [t0][t1][t2] ..
//
// So a word of all of a group's quads is one choice from a vector of them, or two.
namespace gatefold::cpu {
namespace {

template <class Policy>
constexpr int quad_words = static_cast<int>(sizeof(typename Policy::Element));

// The quads of a group's tokens, side by side: in bf16 12 words, in fp32 24.
template <class Policy>
struct Quads {
  static constexpr int vectors = (static_cast<int>(outer_group) * quad_words<Policy> + 15) / 16;
  static_assert(vectors <= 2);

  __m512i words[vectors];

  GATEFOLD_LOOP Quads(const std::byte* values, std::int64_t tokens) {
    const std::uint64_t there = (std::uint64_t{1} << (tokens * quad_words<Policy>)) - 1U;
#pragma GCC unroll 2
    for (int i = 0; i < vectors; ++i) {
      words[i] = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(there >> (16 * i)), values + std::int64_t{64} * i);
    }
  }

  // A word of each token.
  GATEFOLD_LOOP __m512i word(int w) const {
    const __m512i tokens = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i at = _mm512_add_epi32(_mm512_mullo_epi32(tokens, _mm512_set1_epi32(quad_words<Policy>)),
                                        _mm512_set1_epi32(w));  // a constant, once w is
    if constexpr (vectors == 1) return _mm512_permutexvar_epi32(at, words[0]);
    return _mm512_permutex2var_epi32(words[0], at, words[vectors - 1]);
  }
};

// Of a word's bits those of the first `elements` that it has.
template <class Policy>
GATEFOLD_LOOP __m512i first_elements(__m512i word, std::int64_t elements) {
  const std::int64_t bits = elements * 8 * static_cast<std::int64_t>(sizeof(typename Policy::Element));
  if (bits <= 0) return _mm512_setzero_si512();
  return bits >= 32 ? word : _mm512_and_si512(word, _mm512_set1_epi32(static_cast<int>((1U << bits) - 1U)));
}

// A step's quads, of which `count` elements are there, and zeros follow. Packed lines come from memory as a rule, so
// those of the fourth group from here, `ahead` floats on, are asked for meanwhile.
template <class Policy>
GATEFOLD_LOOP void pack_quads_of_step(const QuadPack& p, const std::byte* values, std::int64_t count, float* out,
                                      std::int64_t lane_stride, std::int64_t ahead) {
  constexpr std::int64_t word_elements = Policy::step / outer_lanes;
  const auto used = static_cast<__mmask16>((1U << p.tokens) - 1U);
#pragma GCC unroll 8
  for (int first = 0; first < outer_lanes; first += quad_words<Policy>) {
    const Quads<Policy> quads(first * word_elements < count ? values : p.values, p.tokens);
    values += p.quad_stride;
#pragma GCC unroll 4
    for (int w = 0; w < quad_words<Policy>; ++w) {
      float* to = out + lane_order[first + w] * lane_stride;
      __builtin_prefetch(to + ahead, 1);
      const __m512i word = first_elements<Policy>(quads.word(w), count - (first + w) * word_elements);
      _mm512_mask_storeu_epi32(to, used, word);
    }
  }
}

template <class Policy>
void pack_quads(const QuadPack& p) {
  const std::byte* values = p.values;
  for (std::int64_t k = p.begin; k < p.end; k += Policy::step, values += Policy::step / tile_rows_of * p.quad_stride) {
    const Block block = block_from<Policy>(k / Policy::k_block * Policy::k_block, p.depth);
    float* to = packed_group_at<Policy>(p.packed, block, p.group) + (k - block.begin) / Policy::step * p.tokens;
    pack_quads_of_step<Policy>(p, values, p.end - k, to, positions_of<Policy>(block.count) * p.tokens,
                               4 * outer_group * token_floats<Policy>(block));
  }
}

}  // namespace
}  // namespace gatefold::cpu
