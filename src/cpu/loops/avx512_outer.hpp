#pragma once

#include "cpu/loops/avx512_outer_quads.hpp"

// Many tokens by AVX-512: outer products of 64 rows of weights, side by side in four vectors, and of 6 tokens' words.
//
//   for each block of k_block elements of the sums
//     for each 64 rows of weights                     packed: [lane][position][64 rows], in the second-level cache
//       for each group of 6 tokens                    packed: [lane][position][6 tokens]
//         for each of 16 lanes                        16 KiB of weights and 1.5 of x
//           for each position: 24 accumulators (+)= weights[lane][position] * x[lane][position]
//           add to another lane's sums that wait
//
// A tile holds the 16 lanes of a sum in one vector, and folds it at the end of every block. Here a vector holds one
// lane of 16 rows' sums. The same products are added in the same order, and then the lanes in the order of the fold, so
// that a sum has the same bits either way. But nothing is shuffled in the loops, and weights and x come in one run of
// memory each (docs/kernels/cpu.md).
namespace gatefold::cpu {
namespace {

constexpr int outer_vectors = 4;
constexpr std::int64_t fold_levels = 4;  // of 16 lanes

// Of a group: 6 tokens, or what is left for the last one.
template <int tokens>
using OuterSums = __m512[tokens][outer_vectors];
constexpr std::int64_t outer_sums_floats = outer_group * outer_vectors * 16;

template <class Policy>
GATEFOLD_LOOP typename Policy::Operand operand_of(__m512 words) {
  return (typename Policy::Operand)words;
}

// A word of packed x, which may lie anywhere.
using AnyFloat __attribute__((aligned(1), may_alias)) = float;

// What is asked for during a tile, into the second-level cache: `bytes` further on at every position.
struct Asked {
  const std::byte* from;
  std::int64_t bytes;
};

// One lane of 64 rows' sums with a group's tokens. Nothing behind them is read: packed x may end where its memory ends.
template <class Policy, int tokens>
GATEFOLD_LOOP void multiply_lane(const float* weights, const AnyFloat* x, std::int64_t positions, const Asked& asked,
                                 OuterSums<tokens>& sums) {
#pragma GCC unroll 8
  for (int t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < outer_vectors; ++v) sums[t][v] = _mm512_setzero_ps();
  }
  // The next group's x is asked for meanwhile: it comes from memory, and the processor's own fetch begins anew with
  // every page.
  const AnyFloat* next = x + outer_lanes * positions * tokens;
  const std::byte* rows_ahead = asked.from;
  for (std::int64_t i = 0; i < positions; ++i, x += tokens, next += tokens, weights += outer_rows) {
    __builtin_prefetch(next, 0, 2);
    __builtin_prefetch(rows_ahead, 0, 2);
    rows_ahead += asked.bytes;
    typename Policy::Operand rows[outer_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < outer_vectors; ++v)
      rows[v] = operand_of<Policy>(_mm512_load_ps(weights + std::int64_t{v} * 16));
#pragma GCC unroll 8
    for (int t = 0; t < tokens; ++t) {
      const auto factor = operand_of<Policy>(_mm512_set1_ps(x[t]));
#pragma GCC unroll 4
      for (int v = 0; v < outer_vectors; ++v) sums[t][v] = Policy::multiply_add(rows[v], factor, sums[t][v]);
    }
  }
}

template <int tokens>
GATEFOLD_LOOP void add_waiting(OuterSums<tokens>& sums, const float* waiting) {
#pragma GCC unroll 8
  for (int t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < outer_vectors; ++v) {
      sums[t][v] = _mm512_add_ps(_mm512_load_ps(waiting + std::int64_t{t * outer_vectors + v} * 16), sums[t][v]);
    }
  }
}

template <int tokens>
GATEFOLD_LOOP void leave_waiting(const OuterSums<tokens>& sums, float* waiting) {
#pragma GCC unroll 8
  for (int t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < outer_vectors; ++v) {
      _mm512_store_ps(waiting + std::int64_t{t * outer_vectors + v} * 16, sums[t][v]);
    }
  }
}

// Where a group's sums go: 4 rows of all tokens lie behind the 4 before (PanelProduct::sums). So many fours are there.
struct OuterOut {
  float* sums;
  std::int64_t quad_stride;  // floats
  std::int64_t quads;
  bool first;
};

// Up to four tokens' sums of 4 rows, which lie side by side.
template <int tokens>
GATEFOLD_LOOP void add_quad(const OuterOut& out, __m512 sums, std::int64_t quad, std::int64_t token) {
  if (quad >= out.quads) return;
  constexpr auto used = static_cast<__mmask16>((1U << (tokens * 4)) - 1U);
  float* to = out.sums + quad * out.quad_stride + token * tile_rows_of;
  _mm512_mask_storeu_ps(to, used, out.first ? sums : _mm512_add_ps(sums, _mm512_maskz_loadu_ps(used, to)));
}

// 16 rows of up to four tokens from `first` on become 4 rows of each, four times.
template <int first, int tokens>
GATEFOLD_LOOP void add_turned(const OuterSums<tokens>& sums, std::int64_t v, const OuterOut& out) {
  constexpr int turned = tokens - first < 4 ? tokens - first : 4;
  constexpr int last = tokens - 1;  // fills the places of those that there aren't, which go nowhere
  constexpr int second = first + 1 < last ? first + 1 : last;
  constexpr int third = first + 2 < last ? first + 2 : last;
  constexpr int fourth = first + 3 < last ? first + 3 : last;
  const __m512 ab_low = _mm512_shuffle_f32x4(sums[first][v], sums[second][v], 0x44);
  const __m512 ab_high = _mm512_shuffle_f32x4(sums[first][v], sums[second][v], 0xee);
  const __m512 cd_low = _mm512_shuffle_f32x4(sums[third][v], sums[fourth][v], 0x44);
  const __m512 cd_high = _mm512_shuffle_f32x4(sums[third][v], sums[fourth][v], 0xee);
  add_quad<turned>(out, _mm512_shuffle_f32x4(ab_low, cd_low, 0x88), v * 4, first);
  add_quad<turned>(out, _mm512_shuffle_f32x4(ab_low, cd_low, 0xdd), v * 4 + 1, first);
  add_quad<turned>(out, _mm512_shuffle_f32x4(ab_high, cd_high, 0x88), v * 4 + 2, first);
  add_quad<turned>(out, _mm512_shuffle_f32x4(ab_high, cd_high, 0xdd), v * 4 + 3, first);
}

template <int tokens>
GATEFOLD_LOOP void add_to_panel(const OuterSums<tokens>& sums, const OuterOut& out) {
#pragma GCC unroll 4
  for (std::int64_t v = 0; v < outer_vectors; ++v) {
    add_turned<0>(sums, v, out);
    if constexpr (tokens > 4) add_turned<4>(sums, v, out);
  }
}

// The block of rows that comes next. It is asked for evenly, a line or less at a position: of lines that are asked for
// many at once some are forgotten (docs/kernels/cpu_log.md).
class ComingRows {
 public:
  // `tiles`: within so many; `none`: any memory.
  GATEFOLD_LOOP ComingRows(const std::byte* const* rows, std::int64_t count, std::int64_t offset, std::int64_t bytes,
                           std::int64_t tiles, const std::byte* none)
      : rows_(rows), end_(rows == nullptr ? 0 : count), offset_(offset), bytes_(bytes), none_(none) {
    while (at_a_position_ < 64 && end_ * bytes > at_a_position_ * positions * tiles) at_a_position_ *= 2;
  }

  // Some of a row's lines for a tile.
  GATEFOLD_LOOP Asked take() {
    if (row_ >= end_) return {none_, 0};
    const Asked asked{rows_[row_] + offset_ + begin_, at_a_position_};
    begin_ += at_a_position_ * positions;
    if (begin_ >= bytes_) {
      begin_ = 0;
      ++row_;
    }
    return asked;
  }

 private:
  static constexpr std::int64_t positions = 64;  // of a whole block

  const std::byte* const* rows_;
  std::int64_t end_;
  std::int64_t offset_;
  std::int64_t bytes_;  // of a row
  const std::byte* none_;
  std::int64_t at_a_position_ = 1;  // bytes
  std::int64_t row_ = 0;
  std::int64_t begin_ = 0;
};

// After 64 rows of a block come the panel's next ones, then the next block of its first ones, then the next panel's.
template <class Policy>
GATEFOLD_LOOP ComingRows coming_after(const PanelProduct& p, std::int64_t row, const Block& block) {
  const std::int64_t size = sizeof(typename Policy::Element);
  const std::byte* const* rows = p.rows + row + outer_rows;
  std::int64_t left = p.row_count - row - outer_rows;
  Block next = block;
  if (left <= 0) {
    left = p.row_count;
    next = block_from<Policy>(block.begin + block.count, p.depth);
    rows = next.count > 0 ? p.rows : p.next_rows;
    if (next.count == 0) next = block_from<Policy>(0, p.depth);
  }
  return {rows,
          left < outer_rows ? left : outer_rows,
          next.begin * size,
          next.count * size,
          (p.tokens + outer_group - 1) / outer_group * outer_lanes,
          p.scratch};
}

// 64 rows of packed weights with a group of x. Sums wait where the bits of the count of lanes say that the other half
// of their pair is still to come.
template <class Policy, int tokens>
void multiply_group(const float* weights, const AnyFloat* x, std::int64_t positions, float* waiting,
                    const OuterOut& out, ComingRows& coming) {
  for (int lane = 0; lane < outer_lanes; ++lane) {
    OuterSums<tokens> sums;
    multiply_lane<Policy, tokens>(weights + lane * weights_lane(positions), x + lane * positions * tokens, positions,
                                  coming.take(), sums);
    int level = 0;
    for (; (lane >> level & 1) != 0; ++level) add_waiting(sums, waiting + level * outer_sums_floats);
    if (level < fold_levels) {
      leave_waiting(sums, waiting + level * outer_sums_floats);
    } else {
      add_to_panel(sums, out);
    }
  }
}

// The scratch: packed weights, then the sums that wait.
template <class Policy>
constexpr std::int64_t packed_weights_floats = outer_lanes * weights_lane(positions_of<Policy>(Policy::k_block));
constexpr std::int64_t waiting_floats = fold_levels * outer_sums_floats;

// 64 rows of a panel, or the last ones, with all tokens in one block.
template <class Policy>
void multiply_outer_rows(const PanelProduct& p, std::int64_t row, const Block& block) {
  auto* weights = reinterpret_cast<float*>(p.scratch);
  float* waiting = weights + packed_weights_floats<Policy>;
  const std::byte* rows[outer_rows];
  for (std::int64_t r = 0; r < outer_rows; ++r) rows[r] = p.rows[row + r < p.row_count ? row + r : row];
  pack_rows<Policy>(rows, block, weights);
  ComingRows coming = coming_after<Policy>(p, row, block);
  for (std::int64_t token = 0; token < p.tokens; token += outer_group) {
    const std::int64_t left = p.tokens - token;
    const OuterOut out{p.sums + row * p.tokens + token * tile_rows_of, p.tokens * tile_rows_of,
                       (p.row_count - row) / tile_rows_of, block.begin == 0};
    const AnyFloat* x = packed_group_at<Policy>(p.packed, block, p.group + token / outer_group);
    const std::int64_t positions = positions_of<Policy>(block.count);
    with_tokens<outer_group>(
        left, [&]<int tokens>() { multiply_group<Policy, tokens>(weights, x, positions, waiting, out, coming); });
  }
}

template <class Policy>
void multiply_outer_panel(const PanelProduct& p) {
  if (p.packed.groups == 0) return multiply_panel<Policy>(p);
  for (std::int64_t begin = 0; begin < p.depth; begin += Policy::k_block) {
    for (std::int64_t row = 0; row < p.row_count; row += outer_rows) {
      multiply_outer_rows<Policy>(p, row, block_from<Policy>(begin, p.depth));
    }
  }
}

// `from`: the tokens from which packing pays, where a sum has 2048 terms or more.
template <class Policy>
constexpr Kernel make_outer_kernel(const char* name, DType dtype, std::int64_t from) {
  static_assert(Policy::in_place && Policy::parts == 1 && Policy::tile_tokens == outer_group);
  Kernel kernel = make_kernel<Policy>(name, dtype);
  kernel.multiply = multiply_outer_panel<Policy>;
  kernel.packed_tokens = outer_group;
  kernel.packed_bytes = packed_group_bytes<Policy>;
  kernel.pack = pack_group<Policy>;
  kernel.outer = {.from = from,
                  .terms = 2048,
                  .rows = outer_rows,
                  .columns = Policy::step,
                  .scratch_bytes = (packed_weights_floats<Policy> + waiting_floats) * 4,
                  .pack_quads = pack_quads<Policy>};
  return kernel;
}

}  // namespace
}  // namespace gatefold::cpu
