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

// What the block with most to do takes, in elements of weights read. Rows of half a run, 128 bytes, come a tenth
// slower, and a tile's end takes as long as 8000 elements: on an H200 gate_up of Llama 1B, sums of 2048 terms, takes
// 18.0 and 19.3 us with 1 and 8 tokens in tiles of 16 rows, 17.2 and 17.4 in tiles of 32, but Qwen3 4B's, of 2560, 26.5
// and 28.2, 27.3 and 27.9 (docs/kernels/decode_log.md).
inline std::int64_t cost_of(const Kernel& kernel, const Problem& problem, int multiprocessors) {
  constexpr std::int64_t tile_end = 8000;
  const Config& c = kernel.config;
  const std::int64_t tiles = ceil_div(problem.intermediate_size, std::int64_t{tile_columns(kernel.product, c)});
  const std::int64_t rounds = ceil_div(tiles, std::int64_t{multiprocessors});
  const std::int64_t elements = c.rows() * problem.hidden_size;
  return rounds * (elements + (c.steps < Config::run_steps ? elements / 10 : 0) + tile_end);
}

// Of those that the device has the shared memory for the one of the fewest passes over the weights; of equal ones that
// for the fewest tokens, then the fastest, then the first. Null if there is none.
inline const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                            const Machine& machine) {
  const auto rank = [&](const Kernel& kernel) {
    return std::tuple(ceil_div(tokens, std::int64_t{kernel.config.tokens()}), kernel.config.tokens(),
                      cost_of(kernel, problem, machine.multiprocessors));
  };
  const Kernel* best = nullptr;
  for (const Kernel& kernel : kernels) {
    if (static_cast<std::size_t>(kernel.config.shared_bytes()) > machine.shared_memory_per_block) continue;
    if (best == nullptr || rank(kernel) < rank(*best)) best = &kernel;
  }
  return best;
}

}  // namespace gatefold::cuda::decode
