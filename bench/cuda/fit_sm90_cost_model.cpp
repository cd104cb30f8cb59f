// Fits the figures of the sm_90 cost model to a measurement of bench_sm90_tiles: the rates of gated.cuh, and Figures
// and the bandwidth of cost_model.cpp. A local search from the figures that are compiled: steps that help are kept,
// large ones first. Needs no GPU. Prints how well either set chooses, and the figures as they stand in the source.
//     fit_sm90_cost_model MEASUREMENT [--steps N] [--seed N] [--holdout 1]
// With --holdout 1 it fits to every other shape, from figures that know nothing of the measurement, and prints how well
// that chooses for the rest.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cuda/sm90/cost_model.hpp"
#include "program.hpp"
#include "tile_measurement.hpp"

namespace gatefold::bench {
namespace {

using cuda::sm90::Figures;
using cuda::sm90::Kernel;
using cuda::sm90::Machine;

// What is fitted. (The boxes' time is not: all boxes of this measurement are whole halves.)
struct Model {
  std::vector<Kernel> kernels;
  Machine machine;
  Figures figures;

  double seconds(const Kernel& kernel, const Problem& problem, const TileCell& cell) const {
    Machine chip = machine;
    chip.clusters_of_four = cell.clusters_of_four;
    return estimated_seconds(kernel, problem, cell.tokens, chip, figures);
  }
};

struct Figure {
  std::string name;
  double step;  // in which it is written
  double unit;
  double& (*of)(Model& model, std::size_t index);
  std::size_t index = 0;
};

std::vector<Figure> figures_of(const Model& model) {
  std::vector<Figure> all{
      {"bytes_per_second", 0.01, 1e12, [](Model& m, std::size_t) -> double& { return m.machine.bytes_per_second; }},
      {"fixed_seconds", 0.05, 1e-6, [](Model& m, std::size_t) -> double& { return m.figures.fixed_seconds; }},
      {"cluster_seconds", 0.05, 1e-6, [](Model& m, std::size_t) -> double& { return m.figures.cluster_seconds; }},
      {"exchange_seconds", 0.05, 1e-6, [](Model& m, std::size_t) -> double& { return m.figures.exchange_seconds; }},
      {"exposed_epilogue_seconds", 0.05, 1e-6,
       [](Model& m, std::size_t) -> double& { return m.figures.exposed_epilogue_seconds; }},
      {"idle_fraction", 0.005, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.idle_fraction; }},
      {"left_out_of_all", 0.01, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.left_out_of_all; }},
      {"left_out_of_some", 0.01, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.left_out_of_some; }},
      {"left_out_of_two", 0.01, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.left_out_of_two; }},
      {"subtile_round", 0.005, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.subtile_round; }},
      {"narrow_round", 0.005, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.narrow_round; }},
      {"narrow_together", 0.01, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.narrow_together; }},
      {"exposed_fraction", 0.005, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.exposed_fraction; }},
      {"most_of_average", 0.01, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.most_of_average; }},
      {"latency_seconds", 0.02, 1e-6, [](Model& m, std::size_t) -> double& { return m.figures.latency_seconds; }},
      {"idle_traffic", 0.01, 1.0, [](Model& m, std::size_t) -> double& { return m.figures.idle_traffic; }}};
  for (std::size_t i = 0; i < model.kernels.size(); ++i) {
    all.push_back({name(model.kernels[i].config), 0.5, 1.0,
                   [](Model& m, std::size_t index) -> double& { return m.kernels[index].teraflops; }, i});
  }
  return all;
}

Model compiled_model() {
  const auto kernels = cuda::sm90::kernels(DType::bf16, cuda::sm90::Product::gate_up);
  return {{kernels.begin(), kernels.end()}, cuda::sm90::h200_machine(0), cuda::sm90::h200_figures};
}

// All kernels alike, the rest guessed.
Model rough_model() {
  Model model = compiled_model();
  for (Kernel& kernel : model.kernels) kernel.teraflops = 700.0;
  model.machine.bytes_per_second = 4e12;
  model.figures = {.fixed_seconds = 5e-6,
                   .cluster_seconds = 1e-6,
                   .exchange_seconds = 1e-6,
                   .exposed_epilogue_seconds = 1e-6,
                   .idle_fraction = 1.0,
                   .left_out_of_all = 1.0,
                   .left_out_of_some = 0.0,
                   .left_out_of_two = 0.0,
                   .subtile_round = 0.5,
                   .narrow_round = 0.5,
                   .narrow_together = 0.5,
                   .exposed_fraction = 0.1,
                   .most_of_average = 1.0,
                   .latency_seconds = 1e-6,
                   .idle_traffic = 0.0,
                   .box_seconds = model.figures.box_seconds};
  return model;
}

struct Quality {
  double near = 0.0;    // share of the cells whose choice is near the best kernel
  double regret = 0.0;  // of the choice, on average
  double error = 0.0;   // of the estimates of settled kernels, |log(estimate / time)| on average
  double loss = 0.0;    // what the search makes small
};

Quality quality_of(const Model& model, const std::vector<TileCell>& cells) {
  Quality q;
  double times = 0.0;
  double bounded_squares = 0.0;
  for (const TileCell& cell : cells) {
    const Problem problem = measured_problem(cell.hidden_size, cell.intermediate_size);
    const Kernel* chosen = &model.kernels.front();
    double least = HUGE_VAL;
    for (const Kernel& kernel : model.kernels) {
      const double seconds = model.seconds(kernel, problem, cell);
      if (seconds < least && cuda::sm90::is_meant_for(kernel.config, cell.tokens)) {
        least = seconds;
        chosen = &kernel;
      }
      const auto time = cell.microseconds.find(name(kernel.config));
      if (time == cell.microseconds.end()) continue;
      const double error = std::log(seconds * 1e6 / time->second);
      q.error += std::abs(error);
      bounded_squares += std::min(error * error, 0.01);  // one cell that is far off doesn't pull the others along
      times += 1.0;
    }
    const double regret = cell.regret(name(chosen->config));
    q.regret += regret;
    q.near += regret <= near_best ? 1.0 : 0.0;
  }
  const auto count = static_cast<double>(cells.size());
  q.near /= count;
  q.regret /= count;
  q.error /= times;
  // A percent of regret weighs as much as a quarter of the cells not being near, or estimates that are 4 % off.
  q.loss = 15.0 * q.regret + 0.6 * (1.0 - q.near) + 100.0 * bounded_squares / times;
  return q;
}

// Of `steps` changes of one to three figures by some steps, those that lessen the loss.
Model fitted(Model model, const std::vector<TileCell>& cells, int steps, int seed) {
  const std::vector<Figure> figures = figures_of(model);
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<double> normal;
  double least = quality_of(model, cells).loss;
  for (int i = 0; i < steps; ++i) {
    const double width = 1.0 + 20.0 * (1.0 - static_cast<double>(i) / steps);
    Model changed = model;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const Figure& figure = figures[random() % figures.size()];
      double& value = figure.of(changed, figure.index);
      const double step = figure.step * figure.unit;
      value = std::max(step, std::round(value / step + width * normal(random)) * step);
    }
    const double loss = quality_of(changed, cells).loss;
    if (loss >= least) continue;
    least = loss;
    model = changed;
  }
  return model;
}

// Moves the cells of every other shape out of `cells`.
std::vector<TileCell> take_every_other_shape(std::vector<TileCell>& cells) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const TileCell& c : cells) shapes.emplace(c.hidden_size, c.intermediate_size);
  const auto others = std::ranges::stable_partition(cells, [&](const TileCell& c) {
    return std::distance(shapes.begin(), shapes.find({c.hidden_size, c.intermediate_size})) % 2 == 0;
  });
  std::vector<TileCell> taken(others.begin(), others.end());
  cells.erase(others.begin(), others.end());
  return taken;
}

void print(const char* what, const Model& model, const std::vector<TileCell>& cells) {
  const Quality q = quality_of(model, cells);
  std::printf(
      "%s: of %zu cells the choice is within %.0f %% of the best kernel in %.1f %%, %.2f %% slower on average; "
      "estimates are %.1f %% off, loss %.4f\n",
      what, cells.size(), 100.0 * near_best, 100.0 * q.near, 100.0 * q.regret, 100.0 * q.error, q.loss);
}

void run(int argc, char** argv) {
  if (argc < 2) throw std::invalid_argument("the first argument is a file of bench_sm90_tiles");
  int steps = 20000;
  int seed = 0;
  int holdout = 0;
  parse_options(
      argc, argv, 2,
      {count_option("--steps", steps, 0), count_option("--seed", seed, 0), count_option("--holdout", holdout, 0, 1)});
  TileMeasurement measurement = read_tile_measurement(argv[1]);
  std::vector<TileCell> rest;
  if (holdout != 0) rest = take_every_other_shape(measurement.cells);
  const Model before = compiled_model();
  for (const Kernel& kernel : before.kernels) {
    if (!measurement.kernels.contains(name(kernel.config))) {
      throw std::runtime_error(name(kernel.config) + ": is compiled, but not in " + argv[1]);
    }
  }
  print("compiled", before, measurement.cells);
  Model model = fitted(holdout != 0 ? rough_model() : before, measurement.cells, steps, seed);
  print("fitted", model, measurement.cells);
  if (holdout != 0) print("fitted, on the other shapes", model, rest);
  for (const Figure& f : figures_of(model)) {
    std::printf("  %-30s %g x %g\n", f.name.c_str(), f.of(model, f.index) / f.unit, f.unit);
  }
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("fit_sm90_cost_model", [&] { gatefold::bench::run(argc, argv); });
}
