#include "cuda/sm80/cost_model.hpp"

#include <algorithm>
#include <limits>

#include "core/arithmetic.hpp"
#include "cuda/common/choice.hpp"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {
namespace {

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

// A round of half tiles takes more than half a round: each brings as many weights as a whole one. On an H200 Llama 8B
// takes 517 us for 1024 tokens, five rounds, and 273 for 512, two and that one.
constexpr double half_round = 0.65;

// Whether weight rows `lines` apart lie equally far apart wherever a tile of `columns` begins: there is one block,
// every step is whole blocks of it, or every tile lies within one.
bool even_distances(const Layout& layout, std::int64_t lines, std::int64_t columns) {
  return !layout.interleaved() || lines % layout.block == 0 || layout.block % columns == 0;
}

// Bytes from one row to the next of the operands that are copied, the most of them.
std::int64_t longest_row(const Problem& p) {
  return std::max({p.ld_x, p.ld_up, p.op == Op::gate_up ? p.ld_gate : 0}) * static_cast<std::int64_t>(size_of(p.dtype));
}

bool fits_lines(const Config& c, const Problem& p) {
  return p.hidden_size * static_cast<std::int64_t>(size_of(p.dtype)) % 16 == 0 &&
         even_distances(p.layout, c.lines_per_pass(), c.out_columns()) &&
         longest_row(p) <= std::numeric_limits<std::int32_t>::max() / c.rows_per_pass();
}

// A box is whole blocks of the layout, or lies within one. The copy engine's strides have 40 bits.
bool fits_boxes(const Config& c, const Problem& p) {
  constexpr std::int64_t stride_limit = std::int64_t{1} << 40;
  const std::int64_t period = p.layout.interleaved() ? 2 * p.layout.block : 1;
  return longest_row(p) < stride_limit / period &&
         (!c.gated_pair() || even_distances(p.layout, c.out_columns(), c.out_columns()));
}

// Of a cluster.
std::int64_t tiles_of(const Config& c, const Problem& problem, std::int64_t tokens) {
  return ceil_div(tokens, c.tile_m) * ceil_div(problem.intermediate_size, c.out_columns() * c.cluster);
}

}  // namespace

bool runs_on(const Config& c, const Machine& machine) {
  // What the copy engine serves is compiled for 9.0 alone (CMakeLists.txt).
  return static_cast<std::size_t>(c.shared_bytes()) <= machine.shared_memory_per_block &&
         (c.copies != Copies::boxes || machine.capability == 90);
}

bool fits_layout(const Config& c, const Problem& p) {
  switch (c.copies) {
    case Copies::any_rows: return true;
    case Copies::lines: return fits_lines(c, p);
    case Copies::boxes: return fits_boxes(c, p);
  }
  return false;
}

bool ends_in_halves(const Config& c, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const std::int64_t tiles = tiles_of(c, problem, tokens);
  return c.splits() && whole_tiles(tiles, machine.multiprocessors / c.cluster) < tiles;
}

double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const Config& c = kernel.config;
  const std::int64_t tiles = tiles_of(c, problem, tokens);
  const int clusters = machine.multiprocessors / c.cluster;
  // Blocks that share a multiprocessor share its tensor cores too: what counts is how many tiles it has in all.
  const std::int64_t whole = c.splits() ? whole_tiles(tiles, clusters) : tiles;
  const double rounds = static_cast<double>(ceil_div(whole, clusters)) + (whole < tiles ? half_round : 0.0);
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
