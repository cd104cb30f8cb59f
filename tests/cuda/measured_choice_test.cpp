#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "cuda/sm90/cost_model.hpp"
#include "cuda/tile_measurement.hpp"
#include "gated_problem.hpp"

// The cost model against the measurement of every compiled kernel that is kept with the results: whether a change of
// the model would still choose well on an H200.
namespace gatefold::cuda::sm90 {
namespace {

using bench::TileCell;

bench::TileMeasurement measurement() {
  bench::TileMeasurement measured = bench::read_tile_measurement(GATEFOLD_SM90_TILES);
  measured.average_with(bench::read_tile_measurement(GATEFOLD_SM90_TILES_EARLIER));
  measured.settle();
  return measured;
}

// 128x160 brings 288 rows for 20480 products, 256x192 448 for 49152: 1.54 x as many.
TEST(TileMeasurement, TimesAreSettledWherePowerLimits) {
  const std::map<std::string, double> equal{{"256x192 cluster 1x2", 360.0}, {"128x160 cluster 2x1 in turns", 360.0}};
  bench::TileMeasurement measured;
  measured.cells = {{4096, 14336, 1024, equal},   // 668 TFLOP/s
                    {4096, 14336, 512, equal},    // 334
                    {16384, 53248, 128, equal}};  // one row of tiles
  measured.settle();
  EXPECT_DOUBLE_EQ(measured.cells[0].microseconds["256x192 cluster 1x2"], 360.0);
  EXPECT_NEAR(measured.cells[0].microseconds["128x160 cluster 2x1 in turns"], 360.0 * (1.0 + 0.083 * 0.543), 0.01);
  EXPECT_EQ(measured.cells[1].microseconds, equal);
  EXPECT_EQ(measured.cells[2].microseconds, equal);
  measured.cells = {{4096, 14336, 1024, {{"unknown", 360.0}}}};
  EXPECT_THROW(measured.settle(), std::runtime_error);
}

TEST(MeasuredChoice, IsOfTheKernelsThatAreCompiled) {
  std::set<std::string> compiled;
  for (const Kernel& kernel : kernels(DType::bf16, true)) compiled.insert(name(kernel.config));
  EXPECT_EQ(measurement().kernels, compiled) << "bench_sm90_tiles makes results/h200/sm90_tiles.json anew";
}

TEST(MeasuredChoice, IsWithinThreePercentOfTheBestIn95Percent) {
  const bench::TileMeasurement measured = measurement();
  ASSERT_EQ(measured.cells.size(), 35U * 14U);
  DeviceProperties h200;
  h200.multiprocessors = 132;
  const auto near = std::ranges::count_if(measured.cells, [&](const TileCell& cell) {
    const Problem problem = gated_problem(cell.hidden_size, cell.intermediate_size);
    const Kernel* chosen = choose(kernels(DType::bf16, true), problem, cell.tokens, machine_of(h200));
    return cell.regret(name(chosen->config)) <= bench::near_best;
  });
  EXPECT_GE(static_cast<double>(near), 0.95 * static_cast<double>(measured.cells.size()))
      << "of " << measured.cells.size();
}

}  // namespace
}  // namespace gatefold::cuda::sm90
