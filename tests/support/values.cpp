#include "support/values.hpp"

#include <cmath>

namespace gatefold::test {

double ValueSource::draw(Role role, std::int64_t columns) {
  const bool weights = role == Role::gate_weights || role == Role::up_weights;
  const bool up = role == Role::up_weights || role == Role::up_operand || role == Role::up_bias;
  const double scale = (weights ? 1.0 / std::sqrt(static_cast<double>(columns)) : 1.0) * (up ? 1.5 : 1.0);
  switch (values_) {
    case Values::zero_mean: return std::normal_distribution<double>(0.0, scale)(random_);
    case Values::all_positive: return std::uniform_real_distribution<double>(0.0, 2.0 * scale)(random_);
    case Values::small_integers: return static_cast<double>(up ? integer(-3, 3) : integer(-2, 2));
    case Values::sparse_integers: return static_cast<double>(integer(-2, 2));
  }
  return 0.0;
}

}  // namespace gatefold::test
