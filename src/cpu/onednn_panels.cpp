#include "cpu/onednn_panels.hpp"

#include <algorithm>

namespace gatefold::cpu {
namespace {

constexpr std::int64_t narrowest = 16;
constexpr std::int64_t widest = 128;
constexpr std::int64_t panel_bytes = 256 << 10;    // of one panel in fp32, to stay in the second-level cache
constexpr std::int64_t row_block_bytes = 4 << 20;  // of one row block of x in fp32
constexpr std::int64_t most_rows = 256;            // reading a panel again costs little beside so many rows
constexpr std::int64_t fewest_rows = 16;
constexpr std::int64_t fewest_panels = 8;  // whatever threads there are: a panel's width orders its kernel's sums
constexpr std::size_t alignment = 64;

std::int64_t row_bytes(std::int64_t depth) { return std::max<std::int64_t>(depth, 1) * 4; }

// A panel should fill its part of the cache, and there should be enough of them to share out.
std::int64_t wanted_width(const Problem& problem) {
  const std::int64_t fitting = panel_bytes / row_bytes(problem.hidden_size);
  const std::int64_t shared_out = (problem.intermediate_size + fewest_panels - 1) / fewest_panels;
  const std::int64_t width = std::clamp(std::min(fitting, shared_out), narrowest, widest);
  return std::min(width / narrowest * narrowest, problem.intermediate_size);
}

// The rows of one half are evenly spaced within a block, and throughout if blocks have one row. So a panel needs no
// copy if its width divides the block; 0 if there is no such width from `narrowest` up.
std::int64_t width_within_blocks(std::int64_t wanted, std::int64_t block) {
  for (std::int64_t width = wanted; width >= narrowest; --width) {
    if (block % width == 0) return width;
  }
  return 0;
}

std::int64_t block_rows(std::int64_t depth) {
  const std::int64_t rows = std::clamp(row_block_bytes / row_bytes(depth), fewest_rows, most_rows);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

std::size_t aligned(std::int64_t elements, std::int64_t size) {
  const auto bytes = static_cast<std::size_t>(elements * size);
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

Panels make_panels(const Problem& problem, bool native, int threads) {
  Panels panels;
  panels.compute = native ? problem.dtype : DType::fp32;
  panels.widened = !native && problem.dtype != DType::fp32;
  panels.direct = problem.op == Op::gemm && !panels.widened;
  panels.has_gate = problem.op != Op::gemm;
  panels.depth = problem.hidden_size;
  panels.row_block = block_rows(problem.hidden_size);
  panels.width = wanted_width(problem);
  panels.threads = threads;
  const std::int64_t block = problem.layout.interleaved() ? problem.layout.block : 1;
  if (!panels.widened && block > 1 && block < problem.intermediate_size) {
    const std::int64_t width = width_within_blocks(panels.width, block);
    panels.gathered = width == 0;
    if (!panels.gathered) panels.width = width;
  }
  return panels;
}

PanelWorkspace make_workspace(const Panels& panels, std::int64_t rows, std::size_t scratchpad) {
  const std::int64_t most = std::min(rows, panels.row_block);
  const std::size_t values = aligned(most * panels.width, sizeof(float));
  PanelWorkspace layout;
  layout.threads = panels.widened ? aligned(most * panels.depth, sizeof(float)) : 0;
  layout.activated = panels.copies_weights() ? aligned(panels.width * panels.depth, size_of(panels.compute)) : 0;
  layout.result = layout.activated + (panels.has_gate ? values : 0);
  layout.scratchpad = layout.result + (panels.direct ? 0 : values);
  layout.per_thread = layout.scratchpad + aligned(static_cast<std::int64_t>(scratchpad), 1);
  return layout;
}

}  // namespace gatefold::cpu
