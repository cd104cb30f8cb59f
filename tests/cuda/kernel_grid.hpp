#pragma once

#include <cstdint>
#include <vector>

namespace gatefold::test {

struct GridShape {
  std::int64_t tokens;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
};

// Shapes that lead to every compiled sm_90 kernel, with and without a last round in half tiles (cost_model_test.cpp
// holds them to it): short sums, which the tests on a GPU check quickly, and two longer ones for 256x176. Tails in D (8
// of 64) and mostly in T and F.
inline std::vector<GridShape> kernel_grid() {
  constexpr std::int64_t most_outputs = 10'000'000;
  std::vector<GridShape> grid{{1270, 2056, 2072}, {250, 2056, 10552}, {500, 520, 5896}};
  for (const std::int64_t F : {520, 1000, 2056, 3080, 4104, 8200, 12296, 14328, 20008, 28680}) {
    for (const std::int64_t T : {65, 130, 200, 300, 500, 700, 1100}) {
      if (T * F <= most_outputs) grid.push_back({T, 520, F});
    }
  }
  return grid;
}

}  // namespace gatefold::test
