#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/problem.hpp"

// How a product is cut: into blocks of rows of x, and for each into panels of weight rows, which threads take one at a
// time. What a panel needs beside the operands stays in the workspace, and in the caches.
namespace gatefold::cpu {

struct Panels {
  DType compute = DType::fp32;  // what oneDNN multiplies; the sums are fp32
  bool widened = false;         // x and the weights go to oneDNN as fp32 copies, a row block and a panel at a time
  bool gathered = false;        // a panel's rows don't lie evenly spaced: they are copied side by side
  bool direct = false;          // gemm: oneDNN writes the output. Else an fp32 panel is rounded to it
  bool has_gate = false;        // an activated panel is kept
  std::int64_t depth = 0;       // D
  std::int64_t row_block = 0;   // rows of x at a time, a power of two
  std::int64_t width = 0;       // weight rows at a time
  int threads = 1;

  bool copies_weights() const { return widened || gathered; }
};

// Native: oneDNN multiplies the stored type.
Panels make_panels(const Problem& problem, bool native, int threads);

// Byte offsets in the workspace: x for all threads, then a part for each thread, in which the others lie.
struct PanelWorkspace {
  std::size_t threads = 0;  // where the first thread's part begins
  std::size_t weights = 0;
  std::size_t activated = 0;
  std::size_t result = 0;
  std::size_t scratchpad = 0;
  std::size_t per_thread = 0;

  std::size_t size(int thread_count) const { return threads + static_cast<std::size_t>(thread_count) * per_thread; }
};
PanelWorkspace make_workspace(const Panels& panels, std::int64_t rows, std::size_t scratchpad);

// A row block's products are made for powers of two only. Its rows are covered by those, and the last one may reach
// back over rows that are done: a product costs about as much as this many rows before its first (4096 x 32 weights).
constexpr std::int64_t rows_worth_a_product = 12;

// Calls function(begin, size) until rows 0 ... rows - 1 are covered; stops when it returns false.
template <class Function>
bool cover_rows(std::int64_t rows, Function function) {
  for (std::int64_t done = 0; done < rows;) {
    const auto rest = static_cast<std::uint64_t>(rows - done);
    const auto above = static_cast<std::int64_t>(std::bit_ceil(rest));
    const bool overlap = above <= rows && done + above - rows <= rows_worth_a_product;
    const std::int64_t size = overlap ? above : static_cast<std::int64_t>(std::bit_floor(rest));
    const std::int64_t begin = overlap ? rows - above : done;
    if (!function(begin, size)) return false;
    done = begin + size;
  }
  return true;
}

}  // namespace gatefold::cpu
