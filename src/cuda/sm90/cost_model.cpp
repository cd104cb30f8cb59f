#include "cuda/sm90/cost_model.hpp"

#include <algorithm>

namespace gatefold::cuda::sm90 {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

// Launch, first loads, and the last tile's epilogue, which nothing hides.
constexpr double fixed_seconds = 4e-6;

}  // namespace

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
  const std::int64_t rounds = ceil_div(m * n / c.cluster(), clusters);
  const double tile_flops = 2.0 * c.tile_m * c.tile_n * D;
  const double arithmetic = static_cast<double>(rounds) * tile_flops * h200_multiprocessors / (kernel.teraflops * 1e12);

  const double weights = (c.gated ? 2.0 : 1.0) * F * D;
  const double bytes = 2.0 * (weights + static_cast<double>(tokens) * (D + F));
  return std::max(arithmetic, bytes / machine.bytes_per_second) + fixed_seconds;
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
