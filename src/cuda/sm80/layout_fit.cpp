#include "cuda/sm80/layout_fit.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gatefold::cuda::sm80 {
namespace {

// Whether weight rows `lines` apart lie equally far apart wherever a tile of `columns` begins: there is one block,
// every step is whole blocks of it, or every tile lies within one.
bool even_distances(const Layout& layout, std::int64_t lines, std::int64_t columns) {
  return !layout.interleaved() || lines % layout.block == 0 || layout.block % columns == 0;
}

// Whether a box of so many rows of a half is whole blocks of the layout, or lies within one.
bool whole_blocks(const Config& c, const Problem& p, std::int64_t rows) {
  return !c.gated_pair() || even_distances(p.layout, rows, rows);
}

// Bytes from one row to the next of the operands that are copied, the most of them.
std::int64_t longest_row(const Problem& p) {
  return std::max({p.ld_x, p.ld_up, p.op == Op::gate_up ? p.ld_gate : 0}) * size_of(p.types.x);
}

bool fits_lines(const Config& c, const Problem& p) {
  return p.hidden_size * size_of(p.types.x) % 16 == 0 &&
         even_distances(p.layout, c.lines_per_pass(), c.out_columns()) &&
         longest_row(p) <= std::numeric_limits<std::int32_t>::max() / c.rows_per_pass();
}

// The copy engine's strides have 40 bits.
bool fits_boxes(const Config& c, const Problem& p) {
  constexpr std::int64_t stride_limit = std::int64_t{1} << 40;
  const std::int64_t period = p.layout.interleaved() ? 2 * p.layout.block : 1;
  return longest_row(p) < stride_limit / period && whole_blocks(c, p, c.out_columns());
}

}  // namespace

bool fits_layout(const Config& c, const Problem& p) {
  switch (c.copies) {
    case Copies::any_rows: return true;
    case Copies::lines: return fits_lines(c, p);
    case Copies::boxes: return fits_boxes(c, p);
  }
  return false;
}

bool fits_narrow(const Config& c, const Problem& p, int thirds) {
  const int rows = c.out_columns() / 3 * thirds;
  return whole_blocks(c, p, rows);
}

}  // namespace gatefold::cuda::sm80
