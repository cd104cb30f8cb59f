#pragma once

#include <cstdint>

#include "cuda/copy_engine/barriers.cuh"
#include "cuda/sm80/params.cuh"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {

// The tiles and halves of tiles of one block of threads: those of its cluster, number blockIdx.x / C.cluster and every
// gridDim.x / C.cluster-th after it. Of each the block has its own tile of columns.
template <Config C>
class TileScheduler {
 public:
  __device__ explicit TileScheduler(const Params& params)
      : params_(params), index_(params.first_share + static_cast<std::int32_t>(blockIdx.x) / C.cluster) {}

  __device__ bool valid() const { return index_ < params_.end_share; }
  __device__ void advance() { index_ += static_cast<std::int32_t>(gridDim.x) / C.cluster; }

  __device__ TileCoord coord() const {
    TileCoord tile = share_coord(index_, params_.whole_tiles, params_.tiles_m, params_.tiles_n, params_.group_m);
    if constexpr (C.cluster > 1) tile.n = tile.n * C.cluster + static_cast<std::int32_t>(cluster_rank());
    return tile;
  }

 private:
  const Params& params_;
  std::int32_t index_;
};

}  // namespace gatefold::cuda::sm80
