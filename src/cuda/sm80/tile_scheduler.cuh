#pragma once

#include <cstdint>

#include "cuda/sm80/params.cuh"

namespace gatefold::cuda::sm80 {

struct TileCoord {
  std::int32_t m = 0;
  std::int32_t n = 0;
};

// The tiles of one block of threads: number blockIdx.x and every gridDim.x-th after it. Tiles are numbered down the
// rows first, in groups of group_m rows of tiles, so that the tiles in flight share both their rows of x and their rows
// of the weights in L2: 132 tiles as 16 x 8 touch 24 operand tiles, as 1 x 132 they would touch 133.
class TileScheduler {
 public:
  __device__ explicit TileScheduler(const Params& params)
      : params_(params), index_(static_cast<std::int32_t>(blockIdx.x)) {}

  __device__ bool valid() const { return index_ < params_.tiles; }
  __device__ void advance() { index_ += static_cast<std::int32_t>(gridDim.x); }

  __device__ TileCoord coord() const {
    const std::int32_t per_group = params_.group_m * params_.tiles_n;
    const std::int32_t group = index_ / per_group;
    const std::int32_t within = index_ - group * per_group;
    const std::int32_t first_m = group * params_.group_m;
    const std::int32_t rows = min(params_.tiles_m - first_m, params_.group_m);
    const std::int32_t n = within / rows;
    return {first_m + (within - n * rows), n};
  }

 private:
  const Params& params_;
  std::int32_t index_;
};

}  // namespace gatefold::cuda::sm80
