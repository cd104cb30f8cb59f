#pragma once

#include <cstdint>
#include <vector>

namespace gatefold::test {

struct GridShape {
  std::int64_t tokens;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;

  std::int64_t outputs() const { return tokens * intermediate_size; }
  // The truth of more products takes half a minute: such shapes are for the thorough mode alone.
  bool quick() const { return outputs() * hidden_size < 5'000'000'000; }
};

// A round of the largest tiles, which have no producers, with tails.
inline constexpr GridShape shape_without_producers{250, 520, 14328};

// Shapes that lead to every compiled sm_90 kernel, with and without a last round in half tiles, and to those without
// producers with several tiles for each block (cost_model_test.cpp holds them to it): the cheapest there are. Tails in
// D (8 of 64) and mostly in T and F. Where the sum is short, kernels whose warpgroups take turns win nearly everywhere;
// the others have some shapes to themselves, for gate_up and for gemm.
inline std::vector<GridShape> kernel_grid() {
  constexpr std::int64_t most_outputs = 10'000'000;
  std::vector<GridShape> grid{
      // gate_up
      {130, 136, 520},
      {65, 136, 520},
      {125, 136, 520},
      {130, 136, 2656},
      {130, 136, 5296},
      {65, 264, 10592},
      {65, 1032, 13768},
      {170, 392, 10856},
      {170, 776, 6896},
      {170, 1032, 7952},
      {520, 264, 5296},
      {385, 520, 5656},
      {225, 1032, 5392},
      {385, 1032, 9272},
      {1100, 520, 1552},
      {170, 264, 13232},
      {170, 264, 26432},
      {700, 1032, 15872},
      {170, 264, 13760},
      {170, 264, 27488},
      {225, 776, 21152},
      // gemm
      {130, 520, 12704},
      {130, 1032, 14816},
      {130, 392, 22824},
      {520, 776, 3352},
      {130, 392, 21680},
      {300, 2056, 5656},
      {130, 264, 25376},
      {130, 264, 50720},
      {385, 392, 6544},
      {130, 264, 27488},
      {130, 264, 56008},
      {385, 520, 21152},
  };
  for (const std::int64_t F : {520, 1000, 2056, 3080, 4104, 8200, 12296, 14328, 20008, 28680}) {
    for (const std::int64_t T : {65, 130, 200, 300, 500, 700, 1100}) {
      if (T * F <= most_outputs) grid.push_back({T, 520, F});
    }
  }
  return grid;
}

}  // namespace gatefold::test
