#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gatefold::bench {

// The p-th quantile (0 ... 1), between neighbours where it falls between two.
inline double quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double position = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}
inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace gatefold::bench
