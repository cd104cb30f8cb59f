#pragma once

#include "cpu/loops/avx512_pack.hpp"

// Many tokens by AVX-512: 64 rows of weights beside each other in four vectors, times one element of x at a time.
//
// Of a policy it takes besides what nest.hpp lists: as_floats and from_floats, between an operand and a vector of its
// words, and the tokens and the terms of a sum from which packing pays (docs/kernels/cpu.md): wide_from,
// wide_least_depth.
//
//   for each block of k_block elements of the sums
//     for each 64 rows of weights                     packed[lane][position][64 rows], in the second-level cache
//       for each 12 tokens                            packed once for a run: [lane][position][12 tokens]
//         for each of 16 lanes                        one stream of each from the second-level cache
//           for each 6 tokens
//             for each position: 24 accumulators (+)= packed[lane][position] * x[lane][position]
//             add to another lane's sums that wait
//
// A tile of nest.hpp holds the 16 lanes of a sum in one vector, and folds it at the end of every block. Here a vector
// holds one lane of 16 rows' sums. The same products are added in the same order, and then the lanes in the order of
// the fold, so that a sum has the same bits either way; but nothing is shuffled in the loops, and 6 tokens of x and 4
// vectors of weights meet in the first-level cache.
namespace gatefold::cpu {
namespace {

constexpr std::int64_t wide_vectors = 4;
constexpr std::int64_t wide_tokens = 6;
constexpr std::int64_t wide_tiles = wide_group / wide_tokens;
constexpr std::int64_t fold_levels = 4;  // of 16 lanes

using WideSums = __m512[wide_tokens][wide_vectors];
constexpr std::int64_t tile_floats = wide_tokens * wide_vectors * 16;

// Lines of x that are brought to the second-level cache so far ahead: where x is larger than the caches, its lines come
// from memory, and the processor's own fetch begins anew with every page.
constexpr std::int64_t x_ahead = wide_lanes * x_lane(64);

// One lane of a tile's sums.
template <class Policy>
GATEFOLD_LOOP void multiply_lane(const float* weights, const float* x, std::int64_t positions, WideSums& sums) {
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < wide_tokens; ++t) {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < wide_vectors; ++v) sums[t][v] = _mm512_setzero_ps();
  }
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < positions; ++i) {
    __builtin_prefetch(x + i * wide_group + x_ahead, 0, 2);
    typename Policy::Operand rows[wide_vectors];
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < wide_vectors; ++v) {
      rows[v] = Policy::from_floats(_mm512_load_ps(weights + i * wide_rows + v * 16));
    }
#pragma GCC unroll 8
    for (std::int64_t t = 0; t < wide_tokens; ++t) {
      const auto factor = Policy::from_floats(_mm512_set1_ps(x[i * wide_group + t]));
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < wide_vectors; ++v) sums[t][v] = Policy::multiply_add(rows[v], factor, sums[t][v]);
    }
  }
}

GATEFOLD_LOOP void add_waiting(WideSums& sums, const float* waiting) {
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < wide_tokens; ++t) {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < wide_vectors; ++v) {
      sums[t][v] = _mm512_add_ps(_mm512_load_ps(waiting + (t * wide_vectors + v) * 16), sums[t][v]);
    }
  }
}

GATEFOLD_LOOP void leave_waiting(const WideSums& sums, float* waiting) {
#pragma GCC unroll 8
  for (std::int64_t t = 0; t < wide_tokens; ++t) {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < wide_vectors; ++v) _mm512_store_ps(waiting + (t * wide_vectors + v) * 16, sums[t][v]);
  }
}

// Where a tile's sums go: 16 rows of a token are four groups of four rows in the panel's.
struct WideOut {
  float* sums;
  std::int64_t quad_stride;  // floats from four rows to the next four
  std::int64_t tokens;
  bool first;
};

// A quad of rows of up to four tokens, which lie side by side.
GATEFOLD_LOOP void add_quad(__m512 sums, __mmask16 used, bool first, float* to) {
  _mm512_mask_storeu_ps(to, used, first ? sums : _mm512_add_ps(sums, _mm512_maskz_loadu_ps(used, to)));
}

GATEFOLD_LOOP __mmask16 quads_used(std::int64_t tokens) {
  return static_cast<__mmask16>(tokens >= 4 ? 0xffffU : tokens <= 0 ? 0U : (1U << (4 * tokens)) - 1U);
}

GATEFOLD_LOOP void add_quads(const WideSums& sums, const WideOut& out) {
  const __mmask16 four = quads_used(out.tokens);
  const __mmask16 two = quads_used(out.tokens - 4) & 0xffU;
#pragma GCC unroll 4
  for (std::int64_t v = 0; v < wide_vectors; ++v) {
    float* to = out.sums + v * 4 * out.quad_stride;
    const __m512 low01 = _mm512_shuffle_f32x4(sums[0][v], sums[1][v], 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(sums[0][v], sums[1][v], 0xee);
    const __m512 low23 = _mm512_shuffle_f32x4(sums[2][v], sums[3][v], 0x44);
    const __m512 high23 = _mm512_shuffle_f32x4(sums[2][v], sums[3][v], 0xee);
    add_quad(_mm512_shuffle_f32x4(low01, low23, 0x88), four, out.first, to);
    add_quad(_mm512_shuffle_f32x4(low01, low23, 0xdd), four, out.first, to + out.quad_stride);
    add_quad(_mm512_shuffle_f32x4(high01, high23, 0x88), four, out.first, to + 2 * out.quad_stride);
    add_quad(_mm512_shuffle_f32x4(high01, high23, 0xdd), four, out.first, to + 3 * out.quad_stride);
    const __m512 low45 = _mm512_shuffle_f32x4(sums[4][v], sums[5][v], 0x44);
    const __m512 high45 = _mm512_shuffle_f32x4(sums[4][v], sums[5][v], 0xee);
    to += 4 * tile_rows_of;
    add_quad(_mm512_shuffle_f32x4(low45, low45, 0x88), two, out.first, to);
    add_quad(_mm512_shuffle_f32x4(low45, low45, 0xdd), two, out.first, to + out.quad_stride);
    add_quad(_mm512_shuffle_f32x4(high45, high45, 0x88), two, out.first, to + 2 * out.quad_stride);
    add_quad(_mm512_shuffle_f32x4(high45, high45, 0xdd), two, out.first, to + 3 * out.quad_stride);
  }
}

// Lines of the weights that come next, of 64 rows in one block, brought to the second-level cache meanwhile.
struct WideAhead {
  const std::byte* const* rows;
  std::int64_t offset;
  std::int64_t next;   // of 64 rows' lines
  std::int64_t count;  // for each lane of a tile
  std::int64_t lines;  // of a row, 0: none
};

GATEFOLD_LOOP void fetch_weights(WideAhead& ahead) {
  if (ahead.lines == 0) return;
  for (std::int64_t i = 0; i < ahead.count; ++i, ++ahead.next) {
    const std::int64_t row = ahead.next / ahead.lines;
    if (row < wide_rows) __builtin_prefetch(ahead.rows[row] + ahead.offset + ahead.next % ahead.lines * 64, 0, 2);
  }
}

// 64 rows with up to 12 tokens in one block. Sums wait where the bits of the count of lanes say that the other half of
// their pair is still to come.
template <class Policy>
void multiply_wide_group(const float* weights, const float* x, std::int64_t positions, float* waiting, WideOut out,
                         WideAhead& ahead) {
  const std::int64_t tokens = out.tokens;
  for (int done = 0; done < wide_lanes; ++done) {
    for (std::int64_t token = 0; token < tokens; token += wide_tokens) {
      float* mine = waiting + token / wide_tokens * fold_levels * tile_floats;
      fetch_weights(ahead);
      WideSums sums;
      multiply_lane<Policy>(weights + done * weights_lane(positions), x + done * x_lane(positions) + token, positions,
                            sums);
      int level = 0;
      for (; (done >> level & 1) != 0; ++level) add_waiting(sums, mine + level * tile_floats);
      if (level < fold_levels) {
        leave_waiting(sums, mine + level * tile_floats);
      } else {
        add_quads(sums, {out.sums + token * tile_rows_of, out.quad_stride, tokens - token, out.first});
      }
    }
  }
}

// The scratch: what a tile of nest.hpp widens, packed weights, sums that wait.
template <class Policy>
constexpr std::int64_t narrow_floats = Policy::in_place ? 0 : Policy::tile_tokens * Policy::k_block;
template <class Policy>
constexpr std::int64_t weights_floats = wide_lanes * weights_lane(positions_in_block<Policy>);
constexpr std::int64_t waiting_floats = wide_tiles * fold_levels * tile_floats;

// After 64 rows of a block come the panel's next ones, its first ones further on, or the first ones of the next panel.
template <class Policy>
WideAhead ahead_of(const PanelProduct& p, std::int64_t row, const Block& block) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(typename Policy::Element));
  const std::byte* const* rows = p.rows + row + wide_rows;
  Block next = block;
  if (row + 2 * wide_rows > p.row_count) {
    rows = p.rows;
    next = block_from<Policy>(block.begin + block.count, p.depth);
  }
  if (next.count == 0) {
    rows = p.next_rows;
    next = block_from<Policy>(0, p.depth);
  }
  const std::int64_t lines = rows == nullptr ? 0 : next.count / line;
  const std::int64_t tiles = (p.tokens + wide_tokens - 1) / wide_tokens * wide_lanes;
  return {rows, next.begin / line * 64, 0, lines * wide_rows / tiles + 1, lines};
}

// 64 rows of a panel in one block.
template <class Policy>
void multiply_wide_rows(const PanelProduct& p, std::int64_t row, const Block& block) {
  auto* weights = reinterpret_cast<float*>(p.scratch) + narrow_floats<Policy>;
  const std::int64_t positions = positions_of<Policy>(block.count);
  for (std::int64_t r = 0; r < wide_rows; r += 16) {
    pack_block<Policy>(p.rows + row + r, 16, block, weights + r, wide_rows, weights_lane(positions));
  }
  WideAhead ahead = ahead_of<Policy>(p, row, block);
  for (std::int64_t token = 0; token < p.tokens; token += wide_group) {
    const std::int64_t left = p.tokens - token;
    multiply_wide_group<Policy>(weights, packed_x_at<Policy>(p.packed, block, p.group + token / wide_group), positions,
                                weights + weights_floats<Policy>,
                                {p.sums + row * p.tokens + token * tile_rows_of, p.tokens * tile_rows_of,
                                 left < wide_group ? left : wide_group, block.begin == 0},
                                ahead);
  }
}

// A panel's last rows, as a panel of their own.
GATEFOLD_LOOP PanelProduct rows_from(const PanelProduct& p, std::int64_t row) {
  PanelProduct rest = p;
  rest.rows = p.rows + row;
  rest.row_count = p.row_count - row;
  rest.sums = p.sums + row * p.tokens;
  return rest;
}

template <class Policy>
void multiply_wide_panel(const PanelProduct& p) {
  static_assert(Policy::tile_tokens == wide_tokens);
  if (p.packed.groups == 0) return multiply_panel<Policy>(p);
  const std::int64_t whole = p.row_count / wide_rows * wide_rows;
  for (std::int64_t begin = 0; begin < p.depth; begin += Policy::k_block) {
    for (std::int64_t row = 0; row < whole; row += wide_rows) {
      multiply_wide_rows<Policy>(p, row, block_from<Policy>(begin, p.depth));
    }
  }
  if (whole < p.row_count) multiply_panel<Policy>(rows_from(p, whole));
}

template <class Policy>
constexpr Kernel make_wide_kernel(const char* name, DType dtype) {
  Kernel kernel = make_kernel<Policy>(name, dtype);
  kernel.multiply = multiply_wide_panel<Policy>;
  kernel.packed_from = Policy::wide_from;
  kernel.packed_least_depth = Policy::wide_least_depth;
  kernel.packed_scratch_bytes = (narrow_floats<Policy> + weights_floats<Policy> + waiting_floats) * 4;
  kernel.packed_tokens = wide_group;
  kernel.packed_bytes = wide_x_bytes<Policy>;
  kernel.pack = pack_wide_tokens<Policy>;
  return kernel;
}

}  // namespace
}  // namespace gatefold::cpu
