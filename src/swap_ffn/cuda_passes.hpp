#pragma once

#include <cstdint>
#include <vector>

#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

// The kernels of the step on a GPU, in the order in which they first run.
enum class CudaPass : std::uint8_t { start, route, gate_up, down, rms, pool, collapse, decoder };
constexpr int cuda_pass_count = 8;

// Their shapes, and their bytes by the model that each launch reads its operands and writes its result once.
std::vector<gatefold_swap_ffn_pass_info> cuda_passes(const Config& config, std::int64_t batch);

}  // namespace gatefold::swap_ffn
