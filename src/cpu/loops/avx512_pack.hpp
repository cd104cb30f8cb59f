#pragma once

#include "cpu/loops/avx512_sums.hpp"
#include "cpu/loops/avx512_transpose.hpp"

// Weights and x as avx512_wide.hpp multiplies them: in words of 32 bits, an fp32 or the two bf16 of a product of pairs,
// by the lane of nest.hpp's vectors that a word falls in, and by its position among those of its lane.
// [lane][position][64 rows] and [lane][position][12 tokens].
namespace gatefold::cpu {
namespace {

constexpr std::int64_t wide_rows = 64;
constexpr std::int64_t wide_group = 12;  // tokens
constexpr std::int64_t wide_lanes = 16;

// The lanes lie in the order in which the fold of nest.hpp's tiles adds them: 0 + 8, 4 + 12, their sum, then 2 + 10 ...
// That is the order of the numbers with their bits reversed, so it is its own inverse.
constexpr int lane_order[wide_lanes] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

// Of the positions of a lane in a block: floats from one lane to the next. A line more than there is, so that the 16
// stores of a transposed vector don't meet in one set of the cache.
constexpr std::int64_t weights_lane(std::int64_t positions) { return positions * wide_rows + 16; }
constexpr std::int64_t x_lane(std::int64_t positions) { return positions * wide_group + 16; }

template <class Policy>
constexpr std::int64_t positions_in_block = Policy::k_block / wide_lanes / Policy::pairs;

template <class Policy>
GATEFOLD_LOOP std::int64_t positions_of(std::int64_t count) {
  return (count + Policy::step - 1) / Policy::step * Policy::parts;
}

// One step's part of 16 rows, of which `rows` are there, to a position of each lane. Whole vectors are stored: of fewer
// than 16 rows the next position, or the line between two lanes, takes the rest.
template <class Policy>
GATEFOLD_LOOP void pack_position(const std::byte* const* row, int rows, std::int64_t k, std::int64_t depth, int part,
                                 float* out, std::int64_t lane_stride) {
  __m512 v[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    const auto* at = reinterpret_cast<const typename Policy::Element*>(row[r]) + k;
    if (r >= rows) {
      v[r] = _mm512_setzero_ps();
    } else {
      v[r] = Policy::as_floats(depth - k < Policy::step ? Policy::load_rest(at, part, static_cast<int>(depth - k))
                                                        : Policy::load(at, part));
    }
  }
  transpose(v);
#pragma GCC unroll 16
  for (std::int64_t lane = 0; lane < wide_lanes; ++lane)
    _mm512_storeu_ps(out + lane * lane_stride, v[lane_order[lane]]);
}

// A block of 16 rows.
template <class Policy>
GATEFOLD_LOOP void pack_block(const std::byte* const* row, int rows, const Block& block, float* out,
                              std::int64_t position_stride, std::int64_t lane_stride) {
  const std::int64_t end = block.begin + block.count;
  for (std::int64_t k = block.begin; k < end; k += Policy::step) {
    for (int part = 0; part < Policy::parts; ++part, out += position_stride) {
      pack_position<Policy>(row, rows, k, end, part, out, lane_stride);
    }
  }
}

// Floats of a group's x in a block.
template <class Policy>
GATEFOLD_LOOP std::int64_t group_floats(const Block& block) {
  return wide_lanes * x_lane(positions_of<Policy>(block.count));
}

template <class Policy>
std::int64_t wide_x_bytes(std::int64_t depth) {
  std::int64_t floats = 0;
  for (std::int64_t begin = 0; begin < depth; begin += Policy::k_block) {
    floats += group_floats<Policy>(block_from<Policy>(begin, depth));
  }
  return floats * 4;
}

// Where the x of a group is in a block; all blocks before it are whole.
template <class Policy>
GATEFOLD_LOOP float* packed_x_at(const PackedX& packed, const Block& block, std::int64_t group) {
  const std::int64_t before =
      block.begin / Policy::k_block * packed.groups * group_floats<Policy>({0, Policy::k_block});
  return reinterpret_cast<float*>(packed.base) + before + group * group_floats<Policy>(block);
}

template <class Policy>
void pack_wide_tokens(const TokenPack& p) {
  const std::byte* rows[16];
  for (std::int64_t t = 0; t < 16; ++t) rows[t] = p.x + (t < p.tokens ? t : 0) * p.x_stride;
  for (std::int64_t begin = 0; begin < p.depth; begin += Policy::k_block) {
    const Block block = block_from<Policy>(begin, p.depth);
    pack_block<Policy>(rows, static_cast<int>(p.tokens), block, packed_x_at<Policy>(p.packed, block, p.group),
                       wide_group, x_lane(positions_of<Policy>(block.count)));
  }
}

}  // namespace
}  // namespace gatefold::cpu
