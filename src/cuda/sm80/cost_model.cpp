#include "cuda/sm80/cost_model.hpp"

#include <limits>

#include "core/arithmetic.hpp"
#include "cuda/common/choice.hpp"
#include "cuda/sm80/division.hpp"
#include "cuda/sm80/layout_fit.hpp"

namespace gatefold::cuda::sm80 {
namespace {

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

// Rounds that a round of narrow tiles takes, by the thirds of their width: each brings as many tokens as a whole one.
// So the choice is the best for results/h200/sm80_tiles.json; by the times of Llama 8B and 70B, 0.50 and 0.75 to 0.82.
constexpr double narrow_round[] = {0.0, 0.48, 0.73, 1.0};

// What a tile takes longer that has no other block's to hide behind, in halves of the time that two such take. On an
// H200 1.6 in all for the only one of a multiprocessor (DeepSeek-V3's expert, 128 tokens), 1.2 to 1.7 for the last of
// three to seven.
constexpr double alone = 0.6;

constexpr std::int64_t last_coordinate = std::numeric_limits<std::int32_t>::max();  // the copy engine's

}  // namespace

bool runs_on(const Config& c, const Machine& machine) {
  // What the copy engine serves is compiled for 9.0 alone (CMakeLists.txt).
  return static_cast<std::size_t>(c.shared_bytes()) <= machine.shared_memory_per_block &&
         (c.copies != Copies::boxes || machine.capability == 90);
}

Division division_on(const Machine& machine, const Config& c, const Problem& problem, std::int64_t tokens) {
  return divide(c, problem, tokens, machine.multiprocessors / c.cluster);
}

double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const Config& c = kernel.config;
  const int clusters = machine.multiprocessors / c.cluster;
  const Division division = division_on(machine, c, problem, tokens);
  // Blocks that share a multiprocessor share its tensor cores too: what counts is how many tiles it has in all.
  const std::int64_t whole = ceil_div(division.whole_tiles(), clusters);
  const double rounds = static_cast<double>(whole) + (whole % c.blocks_per_sm == 0 ? 0.0 : alone) +
                        (division.narrow_n > 0 ? narrow_round[division.thirds] : 0.0);
  const double tile_flops = 2.0 * c.tile_m * c.tile_n * static_cast<double>(problem.hidden_size);
  return rounds * tile_flops * h200_multiprocessors / (kernel.teraflops * 1e12);
}

const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine) {
  return fastest(
      kernels,
      [&](const Kernel& kernel) {
        const Config& c = kernel.config;
        return runs_on(c, machine) && fits_layout(c, problem) &&
               (c.copies != Copies::boxes || tokens <= last_coordinate);
      },
      [&](const Kernel& kernel) { return estimated_seconds(kernel, problem, tokens, machine); });
}

}  // namespace gatefold::cuda::sm80
