#pragma once

#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

// gate_up. The rates of tiles for 129 tokens and more are fitted to results/h200/sm90_tiles.json, of gate_up in bf16,
// and to the measurement before it; those for up to 128 tokens to the latter, with the constants of cost_model.cpp, and
// to whole mlps, in which clusters of four cost more than alone (results/h200/up_to_128_trial.json). That of divided
// 128x128 is of 7168 x 2048 with 160 and 192 tokens, which no arithmetic bounds, and leaves 512 to 128x128 alone (44.6
// us, 51.1 divided; results/h200/beginnings_trial.json); where arithmetic does (12288 x 28672, 768 tokens) the kernel
// reaches 607. That of divided 128x64 is of ten experts with 16 to 256 tokens (results/h200/gated_parts_trial.json).
// 104x128 is best in windows of 22 ms where 200x128 is when settled: its rate is such that 200 tokens of 8B are the
// latter's (91.6 us, 93.5 by 104x128; results/h200/tokens_200_trial.json).
template <class E>
constexpr std::array gated_kernels{
    kernel_of<tile_256x224, E, Product::gate_up>(734.5),   kernel_of<tile_256x208, E, Product::gate_up>(723.5),
    kernel_of<tile_256x192, E, Product::gate_up>(725.0),   kernel_of<both_320x128, E, Product::gate_up>(692.0),
    kernel_of<single_256x128, E, Product::gate_up>(714.0), kernel_of<tile_128x192, E, Product::gate_up>(711.5),
    kernel_of<tile_128x160, E, Product::gate_up>(703.0),   kernel_of<row_128x224, E, Product::gate_up>(655.0),
    kernel_of<row_128x208, E, Product::gate_up>(638.0),    kernel_of<row_128x144, E, Product::gate_up>(661.5),
    kernel_of<single_128x192, E, Product::gate_up>(668.0), kernel_of<single_128x160, E, Product::gate_up>(640.5),
    kernel_of<single_128x128, E, Product::gate_up>(620.5), kernel_of<single_128x96, E, Product::gate_up>(595.5),
    kernel_of<single_128x64, E, Product::gate_up>(438.5),  kernel_of<split_128x128, E, Product::gate_up>(700.0),
    kernel_of<split_128x64, E, Product::gate_up>(725.0),   kernel_of<single_80x128, E, Product::gate_up>(478.0),
    kernel_of<tile_96x128, E, Product::gate_up>(568.0),    kernel_of<four_96x128, E, Product::gate_up>(588.0),
    kernel_of<tile_160x128, E, Product::gate_up>(681.5),   kernel_of<four_160x128, E, Product::gate_up>(703.5),
    kernel_of<tile_192x128, E, Product::gate_up>(714.0),   kernel_of<tile_128x176, E, Product::gate_up>(694.5),
    kernel_of<tile_72x192, E, Product::gate_up>(477.0),    kernel_of<half_80x192, E, Product::gate_up>(652.5),
    kernel_of<half_96x192, E, Product::gate_up>(679.5),    kernel_of<half_104x192, E, Product::gate_up>(695.0),
    kernel_of<three_192x192, E, Product::gate_up>(704.5),  kernel_of<four_80x128, E, Product::gate_up>(546.5),
    kernel_of<strips_144x128, E, Product::gate_up>(675.0), kernel_of<strips_176x128, E, Product::gate_up>(690.0),
    kernel_of<strips_160x128, E, Product::gate_up>(681.5), kernel_of<strips_192x128, E, Product::gate_up>(714.0),
    kernel_of<strips_200x128, E, Product::gate_up>(695.0), kernel_of<strips_208x128, E, Product::gate_up>(695.5),
    kernel_of<half_112x192, E, Product::gate_up>(689.0),   kernel_of<half_104x128, E, Product::gate_up>(677.0),
    kernel_of<few_64x64, E, Product::gate_up>(615.0),      kernel_of<few_64x80, E, Product::gate_up>(680.0),
    kernel_of<few_64x96, E, Product::gate_up>(632.5),      kernel_of<few_64x112, E, Product::gate_up>(692.5),
    kernel_of<few_64x128, E, Product::gate_up>(662.5),     kernel_of<few_64x144, E, Product::gate_up>(697.5),
    kernel_of<few_64x176, E, Product::gate_up>(705.0),     kernel_of<few_64x208, E, Product::gate_up>(697.5),
    kernel_of<tile_128x112, E, Product::gate_up>(605.0),
};

}  // namespace gatefold::cuda::sm90
