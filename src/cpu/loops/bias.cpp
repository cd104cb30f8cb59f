#include "cpu/loops/bias.hpp"

#include <array>

#include "core/float16.hpp"
#include "cpu/loops/kernel.hpp"

namespace gatefold::cpu {

void add_bias(const BiasView& bias, DType dtype, const PanelShape& panel, float* sums) {
  if (bias.base == nullptr) return;
  std::array<float, most_rows> values{};  // zeros fill up the last group
  for (std::int64_t j = 0; j < panel.columns; ++j) {
    values[j] = static_cast<float>(load(bias.base, dtype, bias.map(panel.column + j)));
  }
  for (std::int64_t group = 0; group < panel.columns; group += tile_rows_of_weights) {
    for (std::int64_t token = 0; token < panel.tokens; ++token) {
      for (std::int64_t j = 0; j < tile_rows_of_weights; ++j) *sums++ += values[group + j];
    }
  }
}

void multiply_rows(const float* factors, const PanelShape& panel, float* sums) {
  if (factors == nullptr) return;
  for (std::int64_t group = 0; group < panel.columns; group += tile_rows_of_weights) {
    for (std::int64_t token = 0; token < panel.tokens; ++token) {
      for (std::int64_t j = 0; j < tile_rows_of_weights; ++j) *sums++ *= factors[token];
    }
  }
}

}  // namespace gatefold::cpu
