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
// holds them to it): short sums, which the tests on a GPU check quickly. Tails in D (8 of 64) and mostly in T and F.
// Where the sum is short, kernels whose warpgroups take turns win nearly everywhere; the others have some shapes to
// themselves, with less than a round of tiles and with a round or two, for gate_up and for gemm.
inline std::vector<GridShape> kernel_grid() {
  constexpr std::int64_t most_outputs = 10'000'000;
  std::vector<GridShape> grid{
      // gate_up
      {130, 520, 11640},
      {130, 1032, 25160},
      {385, 1032, 9248},
      {1270, 1032, 6336},
      {130, 520, 10600},
      {130, 1032, 23080},
      {385, 1032, 2696},
      {385, 1544, 19856},
      {130, 1032, 8000},
      {130, 1032, 16840},
      {130, 1032, 6960},
      {130, 1032, 14760},
      {257, 520, 4672},
      {257, 1032, 9768},
      {65, 520, 8520},
      {130, 1032, 13616},
      {150, 520, 13000},
      {185, 520, 13400},
      {190, 1032, 16000},
      {385, 1544, 3640},
      {290, 1544, 4872},
      // gemm
      {130, 520, 23288},
      {385, 520, 25056},
      {385, 1032, 17256},
      {385, 1032, 29632},
      {130, 520, 21208},
      {385, 520, 22976},
      {385, 1032, 4256},
      {385, 1032, 27448},
      {130, 1032, 14864},
      {385, 1032, 16736},
      {130, 520, 12680},
      {385, 520, 14760},
  };
  for (const std::int64_t F : {520, 1000, 2056, 3080, 4104, 8200, 12296, 14328, 20008, 28680}) {
    for (const std::int64_t T : {65, 130, 200, 300, 500, 700, 1100}) {
      if (T * F <= most_outputs) grid.push_back({T, 520, F});
    }
  }
  return grid;
}

}  // namespace gatefold::test
