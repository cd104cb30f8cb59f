#pragma once

#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

// gemm: any product, and the down-projection of a block, which has a third of its columns and sums three times as long:
// few tiles, so that narrow ones and, for 160, 192 and twice as many tokens, swap-AB ones make rounds of them: one row
// of tiles, or two of half the tokens that share the weights. The rates of those that gate_up has too were fitted for
// it (docs/kernels/sm90_log.md), but of 128x96 and 128x192; those, 128x128 sharing weights, 192x128 and the
// halves have rates such that the choice was near the best of an H100 and two H200s. Others are in proportion.
template <class E>
constexpr std::array plain_kernels{
    kernel_of<tile_256x224, E, Product::plain>(733.5),   kernel_of<tile_256x208, E, Product::plain>(733.5),
    kernel_of<tile_256x192, E, Product::plain>(728.0),   kernel_of<tile_256x176, E, Product::plain>(692.5),
    kernel_of<tile_128x256, E, Product::plain>(700.0),   kernel_of<tile_128x224, E, Product::plain>(690.0),
    kernel_of<tile_128x192, E, Product::plain>(709.5),   kernel_of<tile_128x160, E, Product::plain>(699.5),
    kernel_of<tile_128x128, E, Product::plain>(670.0),   kernel_of<single_128x192, E, Product::plain>(686.0),
    kernel_of<single_128x160, E, Product::plain>(661.5), kernel_of<single_128x128, E, Product::plain>(651.0),
    kernel_of<single_128x96, E, Product::plain>(540.0),  kernel_of<single_128x64, E, Product::plain>(408.5),
    kernel_of<tile_160x128, E, Product::plain>(679.0),   kernel_of<tile_192x128, E, Product::plain>(684.5),
    kernel_of<half_80x128, E, Product::plain>(530.0),    kernel_of<half_96x128, E, Product::plain>(633.0),
    kernel_of<low_112x128, E, Product::plain>(640.0),    kernel_of<tile_128x96, E, Product::plain>(620.0),
    kernel_of<tile_128x80, E, Product::plain>(588.0),
};

}  // namespace gatefold::cuda::sm90
