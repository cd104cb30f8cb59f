#pragma once

#include "cuda/sm90/config.hpp"
#include "cuda/sm90/pipeline.cuh"

namespace gatefold::cuda::sm90 {

struct TileIndex {
  std::int32_t m;
  std::int32_t n;
};

// Which tiles a persistent block computes: cluster c of C takes the cluster tiles c, c + C, ... The order walks a band
// of group_m token tiles across all weight tiles, then the next band: the blocks at work at one time then read group_m
// token tiles and (blocks / group_m) weight tiles, about a square, and the band's tokens stay in L2.
//
//        n ->
//     m  0  2  4  6  8 ..       group_m = 2
//     |  1  3  5  7  9 ..
//     v  next band
template <Config config>
class TileScheduler {
 public:
  __device__ TileScheduler(const Geometry& geometry, const ClusterPlace<config>& place)
      : place_(place),
        m_clusters_(geometry.m_tiles / config.cluster_m),
        n_clusters_(geometry.n_tiles / config.cluster_n),
        group_(geometry.group_m),
        index_(blockIdx.x / config.cluster()),
        step_(gridDim.x / config.cluster()) {}

  __device__ bool done() const { return index_ >= static_cast<std::int64_t>(m_clusters_) * n_clusters_; }
  __device__ void advance(int tiles = 1) { index_ += tiles * step_; }

  __device__ TileIndex tile() const {
    const std::int64_t band_size = static_cast<std::int64_t>(group_) * n_clusters_;
    const auto band = static_cast<std::int32_t>(index_ / band_size);
    const auto within = static_cast<std::uint32_t>(index_ % band_size);
    const std::int32_t first = band * group_;
    const auto height = static_cast<std::uint32_t>(min(group_, m_clusters_ - first));
    return {
        (first + static_cast<std::int32_t>(within % height)) * config.cluster_m + static_cast<std::int32_t>(place_.m),
        static_cast<std::int32_t>(within / height) * config.cluster_n + static_cast<std::int32_t>(place_.n)};
  }

 private:
  const ClusterPlace<config>& place_;
  std::int32_t m_clusters_;
  std::int32_t n_clusters_;
  std::int32_t group_;
  std::int64_t index_;
  std::int64_t step_;
};

}  // namespace gatefold::cuda::sm90
