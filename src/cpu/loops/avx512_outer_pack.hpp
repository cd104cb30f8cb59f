#pragma once

#include "cpu/loops/avx512_sums.hpp"
#include "cpu/loops/avx512_transpose.hpp"

// Weights and x as avx512_outer.hpp multiplies them: in words of 32 bits, an fp32 or the two bf16 of a product of
// pairs, by the lane of a tile's vectors that a word falls in, and by its position among those of its lane:
//
//   weights  [16 lanes][positions][64 rows]                         of one block of k, made anew for each 64 rows
//   x        [blocks][groups][16 lanes][positions][6 tokens]        once for a run; the last group has what is left
namespace gatefold::cpu {
namespace {

constexpr std::int64_t outer_rows = 64;
constexpr std::int64_t outer_lanes = 16;

// The lanes lie in the order in which the fold of a tile adds them: 0 + 8, 4 + 12, their sum, then 2 + 10 ... That is
// the order of the numbers with their bits reversed, so it is its own inverse.
constexpr int lane_order[outer_lanes] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

// Floats from one lane of weights to the next: a line more than there is, so that the 16 stores of a step don't meet in
// one set of the cache.
constexpr std::int64_t weights_lane(std::int64_t positions) { return positions * outer_rows + 16; }

template <class Policy>
constexpr std::int64_t positions_of(std::int64_t count) {
  return (count + Policy::step - 1) / Policy::step;
}

GATEFOLD_LOOP __m512 words_of(__m512 operand) { return operand; }
GATEFOLD_LOOP __m512 words_of(__m512i operand) { return _mm512_castsi512_ps(operand); }

// A step of 16 rows, turned: of those in `used`, lane l's words to out + l * lane_stride. `count` is the step's
// elements.
template <class Policy>
GATEFOLD_LOOP void pack_step(const std::byte* const* row, std::int64_t offset, std::int64_t count, __mmask16 used,
                             float* out, std::int64_t lane_stride) {
  __m512 words[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    const auto* at = reinterpret_cast<const typename Policy::Element*>(row[r] + offset);
    words[r] = words_of(count < Policy::step ? Policy::load_rest(at, 0, static_cast<int>(count)) : Policy::load(at, 0));
  }
  transpose(words);
#pragma GCC unroll 16
  for (std::int64_t lane = 0; lane < outer_lanes; ++lane) {
    _mm512_mask_storeu_ps(out + lane * lane_stride, used, words[lane_order[lane]]);
  }
}

// A block of 64 rows.
template <class Policy>
GATEFOLD_LOOP void pack_rows(const std::byte* const* rows, const Block& block, float* out) {
  const std::int64_t stride = weights_lane(positions_of<Policy>(block.count));
  const std::int64_t size = sizeof(typename Policy::Element);
  for (std::int64_t r = 0; r < outer_rows; r += 16) {
    float* to = out + r;
    for (std::int64_t k = 0; k < block.count; k += Policy::step, to += outer_rows) {
      pack_step<Policy>(rows + r, (block.begin + k) * size, block.count - k, 0xffff, to, stride);
    }
  }
}

// Floats of a token's x in a block; all blocks but the last are whole.
template <class Policy>
GATEFOLD_LOOP std::int64_t token_floats(const Block& block) {
  return outer_lanes * positions_of<Policy>(block.count);
}

template <class Policy>
GATEFOLD_LOOP float* packed_group_at(const PackedX& packed, const Block& block, std::int64_t group) {
  const std::int64_t before =
      block.begin / Policy::k_block * packed.tokens * token_floats<Policy>({0, Policy::k_block});
  return reinterpret_cast<float*>(packed.base) + before + group * outer_group * token_floats<Policy>(block);
}

template <class Policy>
std::int64_t packed_group_bytes(std::int64_t depth) {
  return positions_of<Policy>(depth) * outer_lanes * outer_group * 4;
}

// A group's rows.
template <class Policy>
void pack_group(const TokenPack& p) {
  const std::byte* rows[16];
  for (std::int64_t t = 0; t < 16; ++t) rows[t] = p.x + (t < p.tokens ? t : 0) * p.x_stride;
  const auto used = static_cast<__mmask16>((1U << p.tokens) - 1U);
  const std::int64_t size = sizeof(typename Policy::Element);
  for (std::int64_t k = 0; k < p.depth; k += Policy::step) {
    const Block block = block_from<Policy>(k / Policy::k_block * Policy::k_block, p.depth);
    float* to = packed_group_at<Policy>(p.packed, block, p.group) + (k - block.begin) / Policy::step * p.tokens;
    pack_step<Policy>(rows, k * size, p.depth - k, used, to, positions_of<Policy>(block.count) * p.tokens);
  }
}

}  // namespace
}  // namespace gatefold::cpu
