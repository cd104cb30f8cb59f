#include "cuda/sm80/cost_model.hpp"

#include "core/arithmetic.hpp"
#include "cuda/common/choice.hpp"
#include "cuda/sm80/division.hpp"
#include "cuda/sm80/layout_fit.hpp"

namespace gatefold::cuda::sm80 {
namespace {

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

// Rounds that a round of narrow tiles takes, by the thirds of their width: each brings as many tokens as a whole one.
// On an H200 Llama 8B takes 108 us for a round; 513 for 1024 tokens, four of them and one of two thirds, and 270 for
// 512, two and one of one third.
constexpr double narrow_round[] = {0.0, 0.5, 0.75, 1.0};

}  // namespace

bool runs_on(const Config& c, const Machine& machine) {
  // What the copy engine serves is compiled for 9.0 alone (CMakeLists.txt).
  return static_cast<std::size_t>(c.shared_bytes()) <= machine.shared_memory_per_block &&
         (c.copies != Copies::boxes || machine.capability == 90);
}

double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const Config& c = kernel.config;
  const int clusters = machine.multiprocessors / c.cluster;
  const Division division = divide(c, problem, tokens, clusters);
  // Blocks that share a multiprocessor share its tensor cores too: what counts is how many tiles it has in all.
  const double rounds = static_cast<double>(ceil_div(division.whole_tiles(), clusters)) +
                        (division.narrow_n > 0 ? narrow_round[division.thirds] : 0.0);
  const double tile_flops = 2.0 * c.tile_m * c.tile_n * static_cast<double>(problem.hidden_size);
  return rounds * tile_flops * h200_multiprocessors / (kernel.teraflops * 1e12);
}

const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine) {
  return fastest(
      kernels,
      [&](const Kernel& kernel) { return runs_on(kernel.config, machine) && fits_layout(kernel.config, problem); },
      [&](const Kernel& kernel) { return estimated_seconds(kernel, problem, tokens, machine); });
}

}  // namespace gatefold::cuda::sm80
