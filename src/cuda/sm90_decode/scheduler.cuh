#pragma once

#include "cuda/sm90_decode/pipeline.cuh"

namespace gatefold::cuda::sm90_decode {

// A tile of the output, by its number. Where it lies is worked out when that is asked for.
template <Config config>
class Tile {
 public:
  __device__ Tile(const Geometry& geometry, int index) : geometry_(geometry), index_(index) {}

  // Of the weights: its first slab's, in that slab's half.
  __device__ int first_row() const {
    return index_ / geometry_.token_tiles * tile_columns(config.product, geometry_.slab_rows);
  }
  __device__ int first_token() const { return index_ % geometry_.token_tiles * config.tokens; }

 private:
  const Geometry& geometry_;
  int index_;
};

// Which tiles a block computes: each of C clusters takes every C-th. Their order has the tiles of tokens of one row
// of weight tiles after each other: all but the first find its weights in L2.
template <Config config>
class TileScheduler {
 public:
  __device__ explicit TileScheduler(const Geometry& geometry)
      : geometry_(geometry),
        clusters_(static_cast<int>(gridDim.x) / geometry.split),
        index_(by_turns(static_cast<int>(blockIdx.x) / geometry.split)) {}

  __device__ bool done() const { return index_ >= geometry_.tiles; }
  __device__ void advance() { index_ += clusters_; }

  __device__ Tile<config> tile() const { return {geometry_, index_}; }

 private:
  // Blocks that are let in early come to multiprocessors in the order in which those become free, by halves of the
  // chip. So it is every other cluster that has a tile more than the others, where the tiles are no whole rounds: by
  // their numbers the last round would be one half's, whose way to memory is narrower.
  __device__ int by_turns(int cluster) const { return cluster % 2 * ((clusters_ + 1) / 2) + cluster / 2; }

  const Geometry& geometry_;
  int clusters_;
  int index_;
};

}  // namespace gatefold::cuda::sm90_decode
