#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/problem.hpp"

// What bench_sm90_tiles measures, and fit_sm90_cost_model and the tests of the choice read:
// results/h200/sm90_tiles.json. And sm80_tiles.json, which tools/gpu/merge_tiles.py writes, whose cells hold every
// kernel.
namespace gatefold::bench {

// A choice is near the best kernel if it takes at most this much longer.
inline constexpr double near_best = 0.03;
// A kernel this much slower than the best one of a burst is not run until it is settled. (A burst may flatter a kernel
// that draws more power than it can have for long, by up to a tenth or so.)
inline constexpr double contends = 0.12;

// The product: gate_up of [gate; up] in bf16.
inline Problem measured_problem(std::int64_t hidden_size, std::int64_t intermediate_size) {
  Problem p;
  p.op = Op::gate_up;
  p.types = ElementTypes::all(DType::bf16);
  p.device = Device::cuda;
  p.layout = {LayoutKind::gate_up, 0};
  p.activation.kind = ActivationKind::silu;
  p.hidden_size = hidden_size;
  p.intermediate_size = intermediate_size;
  p.ld_x = p.ld_gate = p.ld_up = hidden_size;
  p.ld_out = intermediate_size;
  return p;
}

// One product's time by every kernel.
struct TileCell {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t tokens = 0;
  int clusters_of_four = 0;  // that the chip held at a time; 0 where it wasn't asked
  // By the kernel's name; only of kernels that ran until they were settled.
  std::map<std::string, double> microseconds;

  double best() const;  // the least time

  // How much longer a kernel takes than the best, as a fraction; `contends` of one that wasn't settled.
  double regret(const std::string& kernel) const;
};

struct TileMeasurement {
  std::vector<TileCell> cells;
  std::set<std::string> kernels;
};

// Throws std::runtime_error that names the file, if it can't be read or holds something else.
TileMeasurement read_tile_measurement(const std::string& path);

}  // namespace gatefold::bench
