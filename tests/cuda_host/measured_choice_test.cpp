#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cuda/family/choices.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "cuda/tile_measurement.hpp"
#include "gated_problem.hpp"

// The cost model against the measurement of every compiled kernel that is kept with the results: whether a change of
// the model would still choose well on an H200.
namespace gatefold::cuda::sm90 {
namespace {

using bench::TileCell;

bench::TileMeasurement measurement() { return bench::read_tile_measurement(GATEFOLD_SM90_TILES); }

TEST(MeasuredChoice, IsOfTheKernelsThatAreCompiled) {
  std::set<std::string> compiled;
  for (const Kernel& kernel : kernels(DType::bf16, Product::gate_up)) compiled.insert(name(kernel.config));
  EXPECT_EQ(measurement().kernels, compiled) << "bench_sm90_tiles makes results/h200/sm90_tiles.json anew";
}

// Of two windows of 22 ms each, whose noise is some 2 %: so the best of several kernels looks faster than it is.
TEST(MeasuredChoice, IsWithinFivePercentOfTheBestIn92Percent) {
  const bench::TileMeasurement measured = measurement();
  ASSERT_EQ(measured.cells.size(), 737U);
  const auto near = std::ranges::count_if(measured.cells, [&](const TileCell& cell) {
    const Problem problem = gated_problem(cell.hidden_size, cell.intermediate_size);
    const Kernel* chosen = choose(kernels(DType::bf16, Product::gate_up), problem, Choices::last_of_range(cell.tokens),
                                  h200_machine(cell.clusters_of_four));
    return cell.regret(name(chosen->config)) <= 0.05;
  });
  EXPECT_GE(static_cast<double>(near), 0.92 * static_cast<double>(measured.cells.size()))
      << "of " << measured.cells.size();
}

// Experts' few columns, of which sums may be in parts. The best is that of the kernels that are compiled: others were
// on trial.
TEST(MeasuredChoice, OfExpertsIsWithinThreePercentOfTheBestIn90Percent) {
  std::vector<Kernel> all;
  for (const Product product : {Product::gate_up, Product::gated_parts}) {
    std::ranges::copy(kernels(DType::bf16, product), std::back_inserter(all));
  }
  const auto is_compiled = [&](const std::string& tile) {
    return std::ranges::any_of(all, [&](const Kernel& kernel) { return name(kernel.config) == tile; });
  };
  bench::TileMeasurement measured = bench::read_tile_measurement(GATEFOLD_SM90_EXPERTS);
  ASSERT_EQ(measured.cells.size(), 64U);
  const auto near = std::ranges::count_if(measured.cells, [&](TileCell& cell) {
    std::erase_if(cell.microseconds, [&](const auto& entry) { return !is_compiled(entry.first); });
    const Problem problem = gated_problem(cell.hidden_size, cell.intermediate_size);
    const Kernel* chosen =
        choose(all, problem, Choices::last_of_range(cell.tokens), h200_machine(cell.clusters_of_four));
    return cell.regret(name(chosen->config)) <= bench::near_best;
  });
  EXPECT_GE(static_cast<double>(near), 0.9 * static_cast<double>(measured.cells.size())) << near;
}

}  // namespace
}  // namespace gatefold::cuda::sm90
