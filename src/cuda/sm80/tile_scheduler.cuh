#pragma once

#include <cstdint>

#include "cuda/sm80/params.cuh"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {

// The tiles and halves of tiles of one block of threads: number blockIdx.x and every gridDim.x-th after it.
class TileScheduler {
 public:
  __device__ explicit TileScheduler(const Params& params)
      : params_(params), index_(static_cast<std::int32_t>(blockIdx.x)) {}

  __device__ bool valid() const { return index_ - params_.tiles < params_.tiles - params_.whole_tiles; }
  __device__ void advance() { index_ += static_cast<std::int32_t>(gridDim.x); }

  __device__ TileCoord coord() const {
    return share_coord(index_, params_.whole_tiles, params_.tiles_m, params_.tiles_n, params_.group_m);
  }

 private:
  const Params& params_;
  std::int32_t index_;
};

}  // namespace gatefold::cuda::sm80
