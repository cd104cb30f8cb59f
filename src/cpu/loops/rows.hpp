#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.hpp"
#include "cpu/loops/bias.hpp"

namespace gatefold::cpu {

// Where the weight rows of a panel's columns lie, by the layout's map. Past the last column, up to `count` rows, the
// last row again: its sums are left where they are.
void find_panel_rows(const HalfView& view, DType dtype, const PanelShape& panel, std::int64_t count,
                     const std::byte** rows);

}  // namespace gatefold::cpu
