#pragma once

#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/pipeline.cuh"

namespace gatefold::cuda::sm90 {

// A tile of the output, or a subtile of half its tokens.
struct Tile {
  std::int32_t first_row;
  std::int32_t tokens;  // from there on; none, or fewer, where there is nothing to do
  std::int32_t n;
  bool subtile;
  bool narrow = false;            // of its first strip alone
  std::int32_t first_column = 0;  // where tiles may be narrow; elsewhere n tells
  std::int32_t part = 0;          // of the sums, in parts

  template <Config config>
  __device__ std::int32_t column() const {
    return config.may_narrow() ? first_column : n * config.columns();
  }

  // Of the slabs that a warpgroup takes of the tile, 64 tokens every 64 x warpgroups_per_tile(), how many have a token
  // in them: no others are multiplied.
  template <Config config>
  __device__ int slabs_of(int warpgroup) const {
    if (config.tokens_divided && tokens <= warpgroup * config.warpgroup_tokens()) return 0;
    if (config.may_narrow() && narrow) return 1;
    if (config.swap_ab) return config.slabs();
    constexpr int stride = 64 * config.warpgroups_per_tile();
    const int left = tokens - 64 * warpgroup;
    if (left <= 0) return 0;
    return subtile || left <= stride ? 1 : config.slabs();
  }
};

// Which tiles a persistent block computes: cluster c of C takes the cluster tiles c, c + C, ... The order walks a band
// of group_m token tiles across all weight tiles, then the next band: the blocks at work at one time then read group_m
// token tiles and (blocks / group_m) weight tiles, about a square, and the band's tokens stay in L2.
//
//        n ->
//     m  0  2  4  6  8 ..       group_m = 2
//     |  1  3  5  7  9 ..
//     v  next band
//
// The rows of tiles have the tokens dealt out among them, in slabs of 64, so that some may have a slab more than
// others: a cluster then takes tiles of each row in turn (Geometry::turn).
//
// Where the last round would leave half of the clusters idle or more, its tiles are dealt out as subtiles.
template <Config config>
class TileScheduler {
 public:
  __device__ TileScheduler(const Geometry& geometry, const ClusterPlace<config>& place)
      : geometry_(geometry), place_(place), index_(geometry.leg_begin + blockIdx.x / config.cluster()) {}

  __device__ bool done() const { return index_ >= static_cast<std::uint32_t>(geometry_.leg_end); }
  __device__ void advance(int tiles = 1) { index_ += tiles * (gridDim.x / config.cluster()); }

  __device__ Tile tile() const { return tile_of(index_); }
  // The same, but worked out anew: nothing of it occupies registers until then.
  __device__ Tile tile_again() const {
    std::uint32_t index = index_;
    asm volatile("" : "+r"(index));
    return tile_of(index);
  }

 private:
  __device__ Tile tile_of(std::uint32_t at) const {
    const std::uint32_t whole = geometry_.whole_tiles;
    const bool subtile = at >= whole;
    const std::uint32_t index = subtile ? whole + (at - whole) / 2 : at;
    const std::int32_t subtile_row = subtile && (at - whole) % 2 == 1 ? config.tile_m / 2 : 0;

    const std::uint32_t group = geometry_.group_m;
    const std::uint32_t band_size = group * n_clusters();
    const std::uint32_t first = index / band_size * group;
    const std::uint32_t within = index % band_size;
    const std::uint32_t height = min(group, m_clusters() - first);
    const std::uint32_t turned = within + within / static_cast<std::uint32_t>(geometry_.turn);
    const auto m = static_cast<std::int32_t>((first + turned % height) * config.cluster_m + place_.m);
    Tile tile{.first_row = geometry_.first_token(config, m) + subtile_row,
              .tokens = geometry_.tokens_of(config, m) - subtile_row,
              .n = static_cast<std::int32_t>(within / height * config.cluster_n + place_.n),
              .subtile = subtile};
    if constexpr (in_parts(config.product)) {
      tile.part = tile.n / geometry_.part_tiles;
      tile.n -= tile.part * geometry_.part_tiles;
    }
    if constexpr (config.may_narrow()) {
      tile.narrow = tile.n >= geometry_.narrow_from;
      tile.first_column = geometry_.first_column(config, tile.n);
    }
    return tile;
  }

  __device__ std::uint32_t m_clusters() const { return geometry_.m_tiles / config.cluster_m; }
  __device__ std::uint32_t n_clusters() const { return geometry_.n_tiles / config.cluster_n; }

  // Nothing but the index is kept: with 192 accumulators a thread has no registers to spare, and the rest is a
  // constant.
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
  std::uint32_t index_;  // below 2^31: most_tokens() of products.cpp sees to it
};

}  // namespace gatefold::cuda::sm90
