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
      {65, 1032, 3904},
      {130, 520, 520},
      {65, 520, 520},
      {130, 520, 2176},
      {65, 520, 8512},
      {65, 1032, 13768},
      {185, 1032, 6928},
      {770, 1032, 2032},
      {130, 520, 5344},
      {520, 520, 5128},
      {385, 520, 5704},
      {700, 2056, 1888},
      {130, 1032, 11680},
      {385, 1544, 9232},
      {185, 520, 12688},
      {385, 1544, 23776},
      {185, 520, 13768},
      {385, 2056, 25360},
      // gemm
      {130, 1032, 12688},
      {130, 1544, 14848},
      {130, 1544, 18448},
      {520, 1032, 3400},
      {130, 520, 23272},
      {385, 1544, 17296},
      {130, 520, 25360},
      {385, 520, 6280},
      {130, 520, 27520},
      {385, 1032, 21184},
  };
  for (const std::int64_t F : {520, 1000, 2056, 3080, 4104, 8200, 12296, 14328, 20008, 28680}) {
    for (const std::int64_t T : {65, 130, 200, 300, 500, 700, 1100}) {
      if (T * F <= most_outputs) grid.push_back({T, 520, F});
    }
  }
  return grid;
}

}  // namespace gatefold::test
