#pragma once

#include <cstdint>

#include "cuda/copy_engine/barriers.cuh"
#include "cuda/sm80/params.cuh"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {

// The tiles of one block of threads: those of its cluster, number blockIdx.x / C.cluster and every
// gridDim.x / C.cluster-th after it. Of each the block has its own tile of columns.
template <Config C>
class TileScheduler {
 public:
  __device__ explicit TileScheduler(const SchedulerParams& params)
      : params_(params), index_(params.first_work_tile + static_cast<std::int32_t>(blockIdx.x) / C.cluster) {}

  __device__ bool valid() const { return index_ < params_.end_work_tile; }
  __device__ void advance() { index_ += static_cast<std::int32_t>(gridDim.x) / C.cluster; }

  __device__ TileCoord coord() const {
    const std::int32_t rank = C.cluster > 1 ? static_cast<std::int32_t>(cluster_rank()) : 0;
    if constexpr (C.narrows()) return work_tile_coord(params_.division, index_, C.out_columns(), C.cluster, rank);
    return whole_coord(params_.division, index_, C.out_columns(), C.cluster, rank);
  }

 private:
  const SchedulerParams& params_;
  std::int32_t index_;
};

}  // namespace gatefold::cuda::sm80
