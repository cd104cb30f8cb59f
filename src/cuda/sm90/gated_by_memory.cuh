#pragma once

#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

// gemm_gated: gemm's larger tiles, and ping-pong ones: the activation is of as many columns as the product, twice
// gate_up's, and there the other warpgroup multiplies meanwhile. The rates are fitted to
// results/h200/gemm_gated_tiles.json together with epilogue_parts of cost_model.cpp.
template <class E>
constexpr std::array gated_by_memory_kernels{
    kernel_of<tile_256x224, E, Product::gated_by_memory>(702.0),
    kernel_of<tile_256x208, E, Product::gated_by_memory>(719.5),
    kernel_of<tile_256x192, E, Product::gated_by_memory>(741.5),
    kernel_of<tile_128x256, E, Product::gated_by_memory>(697.5),
    kernel_of<tile_128x224, E, Product::gated_by_memory>(689.0),
    kernel_of<tile_128x192, E, Product::gated_by_memory>(688.0),
    kernel_of<tile_128x160, E, Product::gated_by_memory>(658.0),
    kernel_of<row_128x224, E, Product::gated_by_memory>(673.5),
    kernel_of<single_128x128, E, Product::gated_by_memory>(613.5),
};

}  // namespace gatefold::cuda::sm90
