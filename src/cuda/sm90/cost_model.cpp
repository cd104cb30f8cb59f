#include "cuda/sm90/cost_model.hpp"

#include <algorithm>

namespace gatefold::cuda::sm90 {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

// Fitted to an H200's times for Llama 8B, 70B and 405B, 128 to 8192 tokens, each kernel settled: on average 2.4 % off,
// and the choice within 1 % of the best everywhere.
// Launch, first loads, and the last tile's epilogue.
constexpr double fixed_seconds = 3e-6;
// A tile's epilogue where the warpgroups work together: nothing multiplies meanwhile.
constexpr double exposed_epilogue_seconds = 0.6e-6;
// A round that is not full counts for less than a full one: with fewer multiprocessors at work the clock rises.
constexpr double idle_share = 0.75;
// Of the shorter of arithmetic and memory traffic, the part that the longer does not hide.
constexpr double exposed_share = 0.06;
// What a multiprocessor draws at most, of the share it has when all of them draw: a few of them can't use up the
// memory.
constexpr double most_of_share = 1.35;

// The read bandwidth of an H200 as these kernels reach it; a card of this architecture with less shifts where
// arithmetic begins to matter.
constexpr double bytes_per_second = 3.9e12;

}  // namespace

Machine machine_of(const DeviceProperties& device) { return {device.multiprocessors, bytes_per_second}; }

bool fits_layout(const Config& config, const Problem& problem) {
  if (!problem.layout.interleaved()) return true;
  const std::int64_t half = config.tile_n / 2;
  const std::int64_t block = problem.layout.block;
  return half % block == 0 || block % half == 0;
}

double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const Config& c = kernel.config;
  const auto D = static_cast<double>(problem.hidden_size);
  const auto F = static_cast<double>(problem.intermediate_size);

  const std::int64_t m = ceil_div(ceil_div(tokens, c.tile_m), c.cluster_m) * c.cluster_m;
  const std::int64_t n = ceil_div(ceil_div(problem.intermediate_size, c.columns()), c.cluster_n) * c.cluster_n;
  const std::int64_t clusters = machine.multiprocessors / c.cluster();
  const std::int64_t tiles = m * n / c.cluster();
  const auto rounds = static_cast<double>(ceil_div(tiles, clusters));
  const double filled = static_cast<double>(tiles) / static_cast<double>(clusters);
  const double effective = filled + idle_share * (rounds - filled);
  const double tile_flops = 2.0 * c.tile_m * c.tile_n * D;
  const double arithmetic = effective * tile_flops * h200_multiprocessors / (kernel.teraflops * 1e12);

  const double weights = (c.gated ? 2.0 : 1.0) * F * D;
  const double bytes = 2.0 * (weights + static_cast<double>(tokens) * (D + F));
  // Blocks that multiply the same weights by different tokens read them from memory once.
  const double weights_of_one = rounds * 2.0 * c.tile_n * D / static_cast<double>(m);
  const double traffic =
      std::max(bytes, weights_of_one * machine.multiprocessors / most_of_share) / machine.bytes_per_second;
  const double epilogues = c.pingpong ? 0.0 : rounds * exposed_epilogue_seconds;
  return std::max(arithmetic, traffic) + exposed_share * std::min(arithmetic, traffic) + epilogues + fixed_seconds;
}

const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine) {
  const Kernel* best = nullptr;
  double least = 0.0;
  for (const Kernel& kernel : kernels) {
    if (!fits_layout(kernel.config, problem)) continue;
    const double seconds = estimated_seconds(kernel, problem, tokens, machine);
    if (best == nullptr || seconds < least) {
      best = &kernel;
      least = seconds;
    }
  }
  return best;
}

}  // namespace gatefold::cuda::sm90
