#pragma once

#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

// gemm of few columns that is batch-invariant: for few tokens its sums are in parts (parts.cuh) or in halves
// (divided.cuh), and for more tokens than whose parts stay in L2 they must be the same sums. Here a block multiplies
// one part of a tile's after the other, and adds it to those before in the same order. Both are in registers, which
// bounds the tile.
inline constexpr Config adding_128x128{.tile_m = 128, .tile_n = 128, .stages = 6, .cluster_m = 2, .adds_parts = true};
inline constexpr Config adding_128x192{.tile_m = 128, .tile_n = 192, .stages = 5, .cluster_m = 2, .adds_parts = true};

template <class E>
constexpr std::array adding_kernels{
    kernel_of<adding_128x128, E, Product::plain>(640.0),
    kernel_of<adding_128x192, E, Product::plain>(660.0),
};

}  // namespace gatefold::cuda::sm90
