#pragma once

#include "core/problem.hpp"
#include "cuda/sm80/config.hpp"

namespace gatefold::cuda::sm80 {

// Whether a kernel can follow the rows of x and of the weights: LineLoader can't if chunks are cut short, interleaving
// puts the rows of a thread at uneven distances, or they lie 2^31 bytes apart; BoxLoader can't if interleaving cuts a
// box of its columns otherwise than in whole blocks.
bool fits_layout(const Config& config, const Problem& problem);

// The same of tiles of one or two thirds of its width, if it fits those of the whole.
bool fits_narrow(const Config& config, const Problem& problem, int thirds);

}  // namespace gatefold::cuda::sm80
