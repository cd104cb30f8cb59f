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
      : geometry_(geometry), place_(place), index_(blockIdx.x / config.cluster()) {}

  __device__ bool done() const { return index_ >= m_clusters() * n_clusters(); }
  __device__ void advance(int tiles = 1) { index_ += tiles * (gridDim.x / config.cluster()); }

  __device__ TileIndex tile() const {
    const std::uint32_t group = geometry_.group_m;
    const std::uint32_t band_size = group * n_clusters();
    const std::uint32_t first = index_ / band_size * group;
    const std::uint32_t within = index_ % band_size;
    const std::uint32_t height = min(group, m_clusters() - first);
    return {static_cast<std::int32_t>((first + within % height) * config.cluster_m + place_.m),
            static_cast<std::int32_t>(within / height * config.cluster_n + place_.n)};
  }

 private:
  __device__ std::uint32_t m_clusters() const { return geometry_.m_tiles / config.cluster_m; }
  __device__ std::uint32_t n_clusters() const { return geometry_.n_tiles / config.cluster_n; }

  // Nothing but the index is kept: with 192 accumulators a thread has no registers to spare, and the rest is a
  // constant.
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
  std::uint32_t index_;  // below 2^31: most_tokens() of products.cpp sees to it
};

}  // namespace gatefold::cuda::sm90
