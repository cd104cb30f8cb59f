#pragma once

#include <cstdint>
#include <vector>

#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

// What the CPU's step is timed by, in the order in which they first run.
enum class Pass : std::uint8_t { start, measure, route, swap, rms, gate_up, down, pool, collapse };
constexpr int pass_count = 9;

// Their shapes, and their bytes by the model that each launch reads its operands and writes its result once.
std::vector<gatefold_swap_ffn_pass_info> cpu_passes(const Config& config, std::int64_t batch);

}  // namespace gatefold::swap_ffn
