#pragma once

#include <cstdint>

#include "cuda/sm80/tile_layouts.hpp"

namespace gatefold::cuda::sm80 {

// Where a thread's first fragments of both operands lie in stage 0. Swizzling makes those of k-block b lie at the same
// address with 32 b flipped, those of further rows at constant distances.
template <Config C>
struct FragmentAddresses {
  static constexpr int k_block_bytes = 32;
  static constexpr int a_step = 16 * row_bytes;                // from a fragment of x to the one below
  static constexpr int b_step = fragment_step<C> * row_bytes;  // from two of the weights to the two beside them
  std::uint32_t a, b;

  __device__ explicit FragmentAddresses(std::uint32_t shared) {
    using Layouts = TileLayouts<C>;
    const FragmentLane lane(static_cast<int>(threadIdx.x) % 32);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    constexpr int chunk = 16 / C.element_size();
    const int a_row = warp % C.warps_m * Layouts::warp_m + lane.a_row;
    const int b_row = smem_row<C>(warp / C.warps_m * Layouts::warp_n + lane.b_row);
    a = shared + typename Layouts::SmemA{}(a_row, lane.a_chunk * chunk) * C.element_size();
    b = shared + C.tile_m * row_bytes + typename Layouts::SmemB{}(b_row, lane.b_chunk * chunk) * C.element_size();
  }
};

}  // namespace gatefold::cuda::sm80
