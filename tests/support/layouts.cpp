#include "support/layouts.hpp"

namespace gatefold::test {

std::vector<Layout> layouts_for(std::int64_t lines) {
  std::vector<Layout> layouts{Layout::separate(), Layout::gate_up(), Layout::up_gate()};
  for (const std::int64_t block : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 512}) {
    if (lines % block != 0) continue;
    layouts.push_back(Layout::interleaved_gate_up(block));
    layouts.push_back(Layout::interleaved_up_gate(block));
  }
  return layouts;
}

Positions positions(const Layout& layout, std::int64_t lines) {
  Positions p;
  std::int64_t next = 0;
  const auto lay = [&](std::vector<std::int64_t>& half, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) half.push_back(next++);
  };
  switch (layout.kind()) {
    case GATEFOLD_LAYOUT_SEPARATE:
      lay(p.gate, lines);
      next = 0;
      lay(p.up, lines);
      break;
    case GATEFOLD_LAYOUT_GATE_UP:
      lay(p.gate, lines);
      lay(p.up, lines);
      break;
    case GATEFOLD_LAYOUT_UP_GATE:
      lay(p.up, lines);
      lay(p.gate, lines);
      break;
    case GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP:
      while (next < 2 * lines) {
        lay(p.gate, layout.block());
        lay(p.up, layout.block());
      }
      break;
    case GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE:
      while (next < 2 * lines) {
        lay(p.up, layout.block());
        lay(p.gate, layout.block());
      }
      break;
  }
  return p;
}

}  // namespace gatefold::test
