#pragma once

#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

// gemm of few tiles and long sums: 512 x 1024 of 4096 are 32 tiles of 128x128, for 132 multiprocessors. The rates are
// those of the same tiles in gated.cuh.
template <class E>
constexpr std::array divided_plain_kernels{
    kernel_of<split_128x128, E, Product::plain>(640.0),
    kernel_of<split_128x64, E, Product::plain>(476.5),
};

template <const Config& tile, class E>
struct SettledPlainShape : Shape<tile, E, Product::plain> {
  using Loads = ProducerOfSettledWeights<SettledPlainShape::config, E>;
};

// The same where the weights are settled (Problem::weights_settled).
template <class E>
constexpr std::array settled_divided_plain_kernels{
    kernel_of_shape<SettledPlainShape<split_128x128, E>>(640.0),
    kernel_of_shape<SettledPlainShape<split_128x64, E>>(476.5),
};

}  // namespace gatefold::cuda::sm90
