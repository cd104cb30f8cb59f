#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/problem.hpp"
#include "cuda/sm90/config.hpp"

namespace gatefold::cuda::sm90 {

// The boxes in which one strip of a weight tile comes, gate's or up's rows, or of a single weight the first rows or the
// others: one of whole blocks of the layout, and, where the tile's edges cut blocks, further ones for the rows around
// it. The swizzle wants boxes of 8 rows or a multiple.
struct StripBoxes {
  std::int32_t body_rows;    // all of the strip where its edges cut no block; 0 where no whole block surely lies in it
  std::int32_t edge_rows;    // of each further box; 0 where there is none
  std::int32_t body_blocks;  // where there are edges: body_rows / the layout's block

  constexpr std::int32_t edges(std::int32_t strip) const { return edge_rows > 0 ? (strip - body_rows) / edge_rows : 0; }
  constexpr std::int32_t count(std::int32_t strip) const { return (body_rows > 0 ? 1 : 0) + edges(strip); }
};

constexpr std::int64_t largest_coordinate = std::numeric_limits<std::int32_t>::max();

// So many tokens that tiles can be counted in 31 bits, whichever kernel is taken: none has fewer than 32 columns or 64
// tokens.
std::int64_t most_tokens(const Problem& problem);

// What changes from call to call, in units that the kernel needs.
struct Geometry {
  std::int32_t tokens;
  std::int32_t columns;           // of the output: rows of a half, or of a plain product's weight
  std::int32_t k_steps;           // of a block: ceil(D / tile_k), divided by split_k
  std::int32_t m_tiles;           // ceil(tokens / tile_m), then up to a multiple of cluster_m
  std::int32_t n_tiles;           // likewise of the output's columns, and in parts once for each part
  std::int32_t narrow_from;       // columns' tiles from this one on are of one strip (Config::may_narrow)
  std::int32_t whole_tiles;       // of the clusters' tiles; those after them are computed as subtiles
  std::int32_t group_m;           // raster: this many clusters of token tiles are walked together
  std::int32_t tile_tokens;       // of a row of tiles, a multiple of token_quantum()
  std::int32_t longer_rows;       // the first so many rows of tiles have token_quantum() more
  std::int32_t turn;              // raster: after so many tiles the rows of a column are walked from the next one on
  std::int32_t x_box_rows;        // tokens in a box of x: box_rows(), or fewer where there are fewer tokens
  std::int32_t x_tail_rows;       // in the last tokens' box, a multiple of 8; 0 where they fill one of x_box_rows
  StripBoxes strip_boxes;         // of each strip of a weight tile
  std::int32_t strip_tail_rows;   // in the box of a strip that the last column cuts; 0 where none is cut, or by edges
  std::int32_t block;             // rows of a half before the other half begins (the layout's block); F where apart
  std::int32_t prefetched_steps;  // of the first tile's weights, on their way to L2 while the kernel before ends
  std::int32_t leg_begin;         // of the work tiles, those of this launch
  std::int32_t leg_end;
  std::int32_t part_tiles;  // of n_tiles, those of one part of the sums
  std::int32_t part_steps;  // of k_steps, those of one part of the sums: all, but for Config::adds_parts
  // In parts: from a part's first k-step to the next part's, and from a k-step of a part to its next. A part
  // has k_steps in a row, or the parts take k-steps by turns.
  std::int32_t part_offset;
  std::int32_t part_stride;

  // A turn that no product reaches.
  static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();

  // Of row `row` of tiles: where its tokens begin, and how many there are, none or less where it has none.
  constexpr std::int32_t first_token(const Config& c, std::int32_t row) const {
    return row * tile_tokens + (row < longer_rows ? row : longer_rows) * c.token_quantum();
  }
  constexpr std::int32_t tokens_of(const Config& c, std::int32_t row) const {
    const std::int32_t most = tile_tokens + (row < longer_rows ? c.token_quantum() : 0);
    const std::int32_t left = tokens - first_token(c, row);
    return left < most ? left : most;
  }
  constexpr std::int32_t first_column(const Config& c, std::int32_t n) const {
    const std::int32_t before = n < narrow_from ? n : narrow_from;
    return before * c.columns() + (n - before) * c.strip_columns();
  }
  // Whether every row of clusters' tiles has as many slabs of 64 tokens as any other.
  constexpr bool rows_alike(const Config& c) const {
    return m_tiles == c.cluster_m || (longer_rows == 0 && std::int64_t{m_tiles} * tile_tokens - tokens < 64);
  }

  constexpr std::int32_t cluster_tiles(const Config& c) const { return m_tiles * n_tiles / c.tiles_per_cluster(); }
  constexpr std::int32_t narrow_cluster_tiles(const Config& c) const {
    return m_tiles * (n_tiles - narrow_from) / c.tiles_per_cluster();
  }
  // That the scheduler deals out: whole tiles and subtiles.
  constexpr std::int32_t work_tiles(const Config& c) const {
    return cluster_tiles(c) + (cluster_tiles(c) - whole_tiles);
  }
};

// clusters: that the device holds at a time.
Geometry geometry_of(const Config& config, const Problem& problem, std::int64_t tokens, std::int32_t clusters);

// Into how many parts the sums are divided, 1 to most_parts, so that all tiles of all parts are one
// round of the device at most; but as in any batch where the problem is batch-invariant.
constexpr std::int32_t most_parts = 8;
std::int32_t parts_of(const Config& config, const Problem& problem, std::int64_t tokens, std::int32_t clusters);

// Into how many parts the sums of a batch-invariant problem are divided, whatever the number of tokens and the device:
// as many as let few tokens, which share one tile, occupy all multiprocessors.
std::int32_t parts_in_any_batch(const Problem& problem);

// Whether the kernel's sums are divided as those of any other that a batch-invariant problem takes, and have the same
// bits (docs/kernels/batch_invariance.md). Of other problems: yes.
bool sums_alike(const Config& config, const Problem& problem);

// Whether the parts of so many tokens' sums are few enough to be kept in L2 between two kernels.
bool parts_stay_in_l2(const Problem& problem, std::int64_t parts, std::int64_t tokens);

// Of one part: gate's and up's where the weights are two.
std::int64_t sums_of_a_token(const Config& config, const Problem& problem);

// The most bytes that the parts of 1 ... max_tokens tokens' sums come to, on whatever device. by_name: of those too
// that no run takes the kernel for unless it was requested by name.
std::size_t most_bytes_of_parts(const Config& config, const Problem& problem, std::int64_t max_tokens, bool by_name);

// How many of a product's work tiles each of its launches but the last takes (common/legs.hpp).
std::int32_t work_tiles_per_leg(const Config& config, const Geometry& geometry, std::int32_t clusters);

StripBoxes strip_boxes(const Config& config, const Problem& problem);

}  // namespace gatefold::cuda::sm90
