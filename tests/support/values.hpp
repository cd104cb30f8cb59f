#pragma once

#include <algorithm>

#include "support/experiment.hpp"

namespace gatefold::test {

// Draws the elements of an experiment's operands. Gate and up are drawn from different distributions, so that swapped
// halves can't go unnoticed.
class ValueSource {
 public:
  ValueSource(Random& random, Values values, gatefold_dtype dtype) : random_(random), values_(values), dtype_(dtype) {}

  // Weights are scaled by their number of columns, so that sums over them come out near 1.
  enum class Role { activations, gate_weights, up_weights, gate_operand, up_operand, gate_bias, up_bias };
  template <class Set>
  void fill(Role role, std::int64_t rows, std::int64_t columns, Set set) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) set(row, column, 0.0);
      draw_row(role, columns, [&](std::int64_t column, double value) { set(row, column, value); });
    }
  }

 private:
  template <class Set>
  void draw_row(Role role, std::int64_t columns, Set set) {
    const bool weights = role == Role::gate_weights || role == Role::up_weights;
    if (columns == 0) return;
    if (values_ == Values::sparse_integers && weights) {
      // A few, one of them among the last eight: a kernel that drops the end of the sum gives itself away.
      set(std::max<std::int64_t>(0, columns - 1 - integer(0, 7)), sign());
      for (int i = 0; i < 3; ++i) set(integer(0, columns - 1), sign());
      return;
    }
    for (std::int64_t column = 0; column < columns; ++column) set(column, round_to(dtype_, draw(role, columns)));
  }

  double draw(Role role, std::int64_t columns);
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  double sign() { return integer(0, 1) == 0 ? -1.0 : 1.0; }

  Random& random_;
  Values values_;
  gatefold_dtype dtype_;
};

}  // namespace gatefold::test
