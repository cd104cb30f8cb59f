#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/sm90/config.hpp"

namespace gatefold::cuda::sm90 {

// What changes from call to call, in units that the kernel needs.
struct Geometry {
  std::int32_t k_steps;           // ceil(D / tile_k)
  std::int32_t m_tiles;           // ceil(tokens / tile_m), then up to a multiple of cluster_m
  std::int32_t n_tiles;           // likewise of the output's columns
  std::int32_t whole_tiles;       // of the clusters' tiles; those after them are computed half by half
  std::int32_t group_m;           // raster: this many clusters of token tiles are walked together
  std::int32_t x_box_rows;        // tokens in a box of x: box_rows(), or fewer where there are fewer tokens
  std::int32_t half_box_rows;     // weight rows in a box of one half of the tile
  std::int32_t block;             // rows of a half before the other half begins (the layout's block); F where apart
  std::int32_t prefetched_steps;  // of the first tile's weights, on their way to L2 while the kernel before ends

  constexpr std::int32_t cluster_tiles(const Config& c) const { return m_tiles * n_tiles / c.cluster(); }
  // That the scheduler deals out: whole tiles and halves.
  constexpr std::int32_t shares(const Config& c) const { return cluster_tiles(c) + (cluster_tiles(c) - whole_tiles); }
};

// clusters: that the device holds at a time.
Geometry geometry_of(const Config& config, const Problem& problem, std::int64_t tokens, std::int32_t clusters);

// Weight rows that one copy brings of a half of the tile: all of them, or where neither the layout's block divides the
// half nor the half the block, as many as divide both. The swizzle wants multiples of 8.
std::int32_t half_box_rows(const Config& config, const Problem& problem);

}  // namespace gatefold::cuda::sm90
