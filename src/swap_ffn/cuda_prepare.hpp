#pragma once

#include <cstddef>

#include "core/status.hpp"
#include "swap_ffn/cuda_layout.hpp"
#include "swap_ffn/step.hpp"

namespace gatefold::swap_ffn {

// The weights of a step on a GPU, from the device's memory: norms folded, tables of the cores computed. Enqueued.
Status prepare_on_cuda(const Config& config, const CudaPreparedLayout& layout, const Weights& weights,
                       std::byte* prepared, void* stream);

}  // namespace gatefold::swap_ffn
