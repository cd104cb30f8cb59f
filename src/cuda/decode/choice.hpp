#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "core/arithmetic.hpp"
#include "cuda/decode/kernels.hpp"

// Which of the kernels a run takes: pure host code.
namespace gatefold::cuda::decode {

// What the choice knows of a device.
struct Machine {
  std::size_t shared_memory_per_block;
  int multiprocessors;
};

// Whether a kernel that keeps x in registers is faster by it: a block must have several tiles, since it reads x before
// the first of them, where others read it beside the weights (docs/kernels/decode_log.md).
inline bool gains_by_keeping_x(const Kernel& kernel, const Problem& problem, const Machine& machine) {
  constexpr std::int64_t tiles_of_a_block = 3;
  const std::int64_t columns = tile_columns(kernel.product, kernel.config);
  return kernel.config.resident_runs > 0 &&
         ceil_div(problem.intermediate_size, columns) >= tiles_of_a_block * machine.multiprocessors;
}

// Of those that the device has the shared memory for the one of the fewest passes over the weights; of equal ones that
// for the fewest tokens, then one that gains by keeping x, then one that doesn't keep it, in the fewest registers. Null
// if there is none.
inline const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                            const Machine& machine) {
  const auto rank = [&](const Kernel& kernel) {
    const Config& c = kernel.config;
    return std::tuple(ceil_div(tokens, std::int64_t{c.tokens()}), c.tokens(),
                      !gains_by_keeping_x(kernel, problem, machine), c.resident_runs);
  };
  const Kernel* best = nullptr;
  for (const Kernel& kernel : kernels) {
    if (static_cast<std::size_t>(kernel.config.shared_bytes()) > machine.shared_memory_per_block) continue;
    if (best == nullptr || rank(kernel) < rank(*best)) best = &kernel;
  }
  return best;
}

}  // namespace gatefold::cuda::decode
