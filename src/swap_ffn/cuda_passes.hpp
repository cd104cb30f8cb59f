#pragma once

#include <cstdint>
#include <vector>

#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

// The kernels of the step on a GPU, in the order in which they first run. Of one step the MLPs of an event are one
// kernel (chain), or gate_up, down and rms are.
enum class CudaPass : std::uint8_t { start, route, chain, gate_up, down, rms, pool, collapse, decoder };
constexpr int cuda_pass_count = 9;

// Their shapes, and their bytes by the model that each launch reads its operands and writes its result once; of a chain
// each of its MLPs. chained: whether there are chains. Of what there is not there are no launches.
std::vector<gatefold_swap_ffn_pass_info> cuda_passes(const Config& config, std::int64_t batch, bool chained);

}  // namespace gatefold::swap_ffn
