#pragma once

#include <cstdint>

#include "gatefold/gatefold.h"
#include "gatefold/names.h"

namespace gatefold {

enum class LayoutKind : std::uint8_t {
  none = 0,
  separate = GATEFOLD_LAYOUT_SEPARATE,
  gate_up = GATEFOLD_LAYOUT_GATE_UP,
  up_gate = GATEFOLD_LAYOUT_UP_GATE,
  interleaved_gate_up = GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP,
  interleaved_up_gate = GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE,
};

enum class Half : std::uint8_t { gate, up };

// Where line j of one half (a row of the weights, a column of an act_and_mul operand) lies among the lines of the
// tensor that holds it: first + (j / block) * period + j % block. Every layout is two such maps; a kernel that follows
// them needs no copy of the weights.
//
//   separate             gate {0, F, F}    up {0, F, F} of its own tensor
//   gate_up              gate {0, F, F}    up {F, F, F}
//   interleaved, block b gate {0, b, 2b}   up {b, b, 2b}
struct LineMap {
  std::int64_t first = 0;
  std::int64_t block = 1;
  std::int64_t period = 1;

  constexpr std::int64_t operator()(std::int64_t j) const { return first + j / block * period + j % block; }
};

struct Layout {
  LayoutKind kind = LayoutKind::none;
  std::int64_t block = 0;  // interleaved only

  constexpr bool packed() const { return kind != LayoutKind::none && kind != LayoutKind::separate; }
  constexpr bool interleaved() const {
    return kind == LayoutKind::interleaved_gate_up || kind == LayoutKind::interleaved_up_gate;
  }
  constexpr bool up_first() const { return kind == LayoutKind::up_gate || kind == LayoutKind::interleaved_up_gate; }

  // lines: of one half (F).
  constexpr LineMap map(Half half, std::int64_t lines) const {
    const std::int64_t run = interleaved() ? block : (lines > 0 ? lines : 1);
    const bool second = packed() && (half == Half::up) != up_first();
    return {second ? run : 0, run, interleaved() ? 2 * run : run};
  }
};

constexpr const char* to_string(LayoutKind kind) {
  return kind == LayoutKind::none ? "none" : gatefold_name_of_layout(static_cast<gatefold_layout>(kind));
}

}  // namespace gatefold
