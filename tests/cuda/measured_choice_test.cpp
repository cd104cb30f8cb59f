#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "cuda/sm90/cost_model.hpp"
#include "gated_problem.hpp"

// The cost model against the measurement of every compiled kernel that is kept with the results: whether a change of
// the model would still choose well on an H200.
namespace gatefold::cuda::sm90 {
namespace {

using Cell = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // hidden size, intermediate size, tokens

// Microseconds by the kernel's name, of those that were run until they were settled: the others were more than 12 %
// slower than the best.
using Times = std::map<std::string, double>;

struct Measurement {
  std::map<Cell, Times> cells;
  std::set<std::string> kernels;
};

Measurement measurement() {
  Measurement result;
  std::ifstream file(GATEFOLD_SM90_TILES);
  const nlohmann::json rows = nlohmann::json::parse(file).at("rows");
  for (const nlohmann::json& row : rows) {
    const std::string kernel = row.at("tile");
    result.kernels.insert(kernel);
    Times& times = result.cells[{row.at("hidden_size"), row.at("intermediate_size"), row.at("tokens")}];
    if (row.at("settled")) times[kernel] = row.at("time_us");
  }
  return result;
}

double least(const Times& times) {
  return std::ranges::min_element(times, {}, [](const auto& entry) { return entry.second; })->second;
}

TEST(MeasuredChoice, IsOfTheKernelsThatAreCompiled) {
  std::set<std::string> compiled;
  for (const Kernel& kernel : kernels(DType::bf16, true)) compiled.insert(name(kernel.config));
  EXPECT_EQ(measurement().kernels, compiled) << "bench_sm90_tiles makes results/h200/sm90_tiles.json anew";
}

TEST(MeasuredChoice, IsWithinThreePercentOfTheBestIn95Percent) {
  const Measurement measured = measurement();
  ASSERT_EQ(measured.cells.size(), 35U * 12U);
  DeviceProperties h200;
  h200.multiprocessors = 132;
  int near = 0;
  for (const auto& [cell, times] : measured.cells) {
    const auto& [D, F, T] = cell;
    const Kernel* chosen = choose(kernels(DType::bf16, true), gated_problem(D, F), T, machine_of(h200));
    const auto time = times.find(name(chosen->config));
    if (time != times.end() && time->second <= 1.03 * least(times)) ++near;
  }
  EXPECT_GE(near, 0.95 * static_cast<double>(measured.cells.size())) << "of " << measured.cells.size();
}

}  // namespace
}  // namespace gatefold::cuda::sm90
