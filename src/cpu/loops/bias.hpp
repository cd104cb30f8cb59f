#pragma once

#include <cstdint>

#include "core/problem.hpp"

namespace gatefold::cpu {

// A panel's sums, [columns / 4][tokens][4]: of `columns` columns from `column` on, the last group of 4 filled up.
struct PanelShape {
  std::int64_t column = 0;
  std::int64_t columns = 0;  // at most most_rows
  std::int64_t tokens = 0;
};

// Adds each column's bias to its finished sums, in fp32; nothing where there is no bias. One addition for each element,
// so that a result doesn't depend on the tokens and threads beside it.
void add_bias(const BiasView& bias, DType dtype, const PanelShape& panel, float* sums);

// Multiplies each token's finished sums by the token's own factor, in fp32; nothing where there are none.
void multiply_rows(const float* factors, const PanelShape& panel, float* sums);

}  // namespace gatefold::cpu
