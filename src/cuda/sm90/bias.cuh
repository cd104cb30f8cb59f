#pragma once

#include <cute/tensor.hpp>

#include "cuda/common/bias.cuh"
#include "cuda/common/ptx.cuh"
#include "cuda/sm90/scheduler.cuh"

// Biases are added to a tile's sums in registers, in fp32, before the epilogue makes anything of them: where there are
// none, a tile takes a uniform branch for each vector.
namespace gatefold::cuda::sm90 {

// Adds a vector to the sums whose first 8 columns are group `first_group` of tCrC ((2, 2, tile_n / 8), slabs, 1): per 8
// columns, two of row r and two of row r + 8. Where a column's bias lies takes a division, so each lane of a warp finds
// those of a few columns, and hands them on.
template <Config config, class Element, class Accumulator>
__device__ void add_to_columns(const TileBias& bias, const Tile& tile, int first_group, int thread, Accumulator& tCrC) {
  if (!bias.is_there()) return;
  // The kernel before may have written the biases. It has ended, as its x came through the ring; this thread has not
  // seen that yet.
  ptx::wait_for_previous_grid();
  constexpr int columns = config.columns();
  const int lane = thread % 32;
  float of_lane[(columns + 31) / 32];  // of columns lane, 32 + lane, ...
#pragma unroll
  for (int i = 0; i < (columns + 31) / 32; ++i) {
    of_lane[i] = bias.at<Element>(static_cast<std::uint32_t>(tile.n * columns + 32 * i + lane));
  }
#pragma unroll
  for (int group = 0; group < columns / 8; ++group) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float value = __shfl_sync(0xffffffffU, of_lane[group / 4], group % 4 * 8 + lane % 4 * 2 + i);
#pragma unroll
      for (int slab = 0; slab < config.slabs(); ++slab) {
        tCrC(cute::make_coord(i, 0, first_group + group), slab, 0) += value;
        tCrC(cute::make_coord(i, 1, first_group + group), slab, 0) += value;
      }
    }
  }
}

// The same for weight rows as rows (swap-AB): slab `slab` of tCrC ((2, 2, tile_m / 8), 2, 1) has per 8 tokens two of
// column r and two of column r + 8, r being the thread's own.
template <Config config, class Element, class Accumulator>
__device__ void add_to_rows(const TileBias& bias, std::uint32_t first_column, int slab, int thread, Accumulator& tCrC) {
  if (!bias.is_there()) return;
  ptx::wait_for_previous_grid();  // as above
  const auto r = static_cast<std::uint32_t>(thread % 128 / 32 * 16 + thread % 32 / 4);
#pragma unroll
  for (int column = 0; column < 2; ++column) {
    const float value = bias.at<Element>(first_column + r + 8 * column);
#pragma unroll
    for (int group = 0; group < config.tile_m / 8; ++group) {
      tCrC(cute::make_coord(0, column, group), slab, 0) += value;
      tCrC(cute::make_coord(1, column, group), slab, 0) += value;
    }
  }
}

}  // namespace gatefold::cuda::sm90
