#include "cpu/loops/rows.hpp"

namespace gatefold::cpu {

void find_panel_rows(const HalfView& view, DType dtype, const PanelShape& panel, std::int64_t count,
                     const std::byte** rows) {
  std::int64_t within = panel.column % view.map.block;
  std::int64_t line = view.map(panel.column);
  for (std::int64_t j = 0; j < panel.columns; ++j) {
    rows[j] = view.base + line * view.ld * size_of(dtype);
    ++line;
    if (++within == view.map.block) {
      within = 0;
      line += view.map.period - view.map.block;
    }
  }
  for (std::int64_t j = panel.columns; j < count; ++j) rows[j] = rows[panel.columns - 1];
}

}  // namespace gatefold::cpu
