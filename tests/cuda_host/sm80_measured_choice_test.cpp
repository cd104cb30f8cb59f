#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cuda/family/choices.hpp"
#include "cuda/sm80/cost_model.hpp"
#include "cuda/sm80/kernels.hpp"
#include "cuda/tile_measurement.hpp"

// sm80's cost model against the measurement of its kernels that is kept with the results.
namespace gatefold::cuda::sm80 {
namespace {

constexpr Machine h200{132, 227 * 1024, 90};

bench::TileMeasurement measurement() { return bench::read_tile_measurement(GATEFOLD_SM80_TILES); }

// What the implementation sm80 has for gate_up in bf16, but the kernel for orders that no other follows.
std::vector<Kernel> measured_kernels() {
  std::vector<Kernel> result = kernels(Op::gate_up, DType::bf16, Gating::groups_of_eight);
  std::erase_if(result, [](const Kernel& kernel) { return name(kernel.config) == "128x256"; });
  return result;
}

TEST(Sm80MeasuredChoice, IsOfTheKernelsThatAreCompiled) {
  std::set<std::string> compiled;
  for (const Kernel& kernel : measured_kernels()) compiled.insert(name(kernel.config));
  EXPECT_EQ(measurement().kernels, compiled) << "tools/gpu/measure's step sm80_tiles makes sm80_tiles.json anew";
}

TEST(Sm80MeasuredChoice, IsNearTheBest) {
  const bench::TileMeasurement measured = measurement();
  const std::vector<Kernel> candidates = measured_kernels();
  ASSERT_EQ(measured.cells.size(), 9U * 12U);
  int near = 0;
  for (const bench::TileCell& cell : measured.cells) {
    const Problem problem = bench::measured_problem(cell.hidden_size, cell.intermediate_size);
    const double regret =
        cell.regret(name(choose(candidates, problem, Choices::last_of_range(cell.tokens), h200)->config));
    EXPECT_LE(regret, 0.05) << cell.hidden_size << " x " << cell.intermediate_size << ", " << cell.tokens << " tokens";
    if (regret <= bench::near_best) ++near;
  }
  EXPECT_GE(near, 0.95 * static_cast<double>(measured.cells.size()));
}

}  // namespace
}  // namespace gatefold::cuda::sm80
