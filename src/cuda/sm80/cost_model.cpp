#include "cuda/sm80/cost_model.hpp"

namespace gatefold::cuda::sm80 {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

}  // namespace

double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const Config& c = kernel.config;
  const std::int64_t tiles = ceil_div(tokens, c.tile_m) * ceil_div(problem.intermediate_size, c.out_columns());
  // Blocks that share a multiprocessor share its tensor cores too: what counts is how many tiles it has in all.
  const auto rounds = static_cast<double>(ceil_div(tiles, machine.multiprocessors));
  const double tile_flops = 2.0 * c.tile_m * c.tile_n * static_cast<double>(problem.hidden_size);
  return rounds * tile_flops * h200_multiprocessors / (kernel.teraflops * 1e12);
}

const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine) {
  const Kernel* best = nullptr;
  double least = 0.0;
  for (const Kernel& kernel : kernels) {
    if (static_cast<std::size_t>(kernel.config.shared_bytes()) > machine.shared_memory_per_block) continue;
    const double seconds = estimated_seconds(kernel, problem, tokens, machine);
    if (best == nullptr || seconds < least) {
      best = &kernel;
      least = seconds;
    }
  }
  return best;
}

}  // namespace gatefold::cuda::sm80
