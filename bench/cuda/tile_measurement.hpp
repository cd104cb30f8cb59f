#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/problem.hpp"

// What bench_sm90_tiles measures, and fit_sm90_cost_model and the test MeasuredChoice read:
// results/h200/sm90_tiles.json, and sm90_tiles_earlier.json, of most of the same kernels.
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
  p.dtype = DType::bf16;
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
  // By the kernel's name; only of kernels that ran until they were settled.
  std::map<std::string, double> microseconds;

  double best() const;  // the least time

  // How much longer a kernel takes than the best, as a fraction; `contends` of one that wasn't settled.
  double regret(const std::string& kernel) const;
};

struct TileMeasurement {
  std::vector<TileCell> cells;
  std::set<std::string> kernels;

  // With another measurement of the same cells: of the kernels that both have, the geometric mean of the two times,
  // once those of the other one's cell are scaled so that in the median they agree. (A single time is often 1 % and at
  // times 4 % off, since the chip is at its power limit.) Cells that the other lacks stay as they are.
  void average_with(const TileMeasurement& other);

  // What the times would be if each kernel had the chip to itself for long. A window of some 25 ms still runs at the
  // clock that the kernels before it left, which flatters those that draw more power: in windows of 60 ms, by their
  // ratios to cuBLASLt in two runs, 128x160 in turns took 9 % longer than 256x224 for Llama 8B with 1024 tokens and 6 %
  // longer than 256x208 with 2048, and 128x192 2 % longer than 256x192 for 405B with 512, which short windows hold to
  // be equal. What power is spent on beside products is bytes that multiprocessors receive (docs/kernels/sm90.md). So
  // where power limits, a time grows by `power_share` of what the rows that the kernel's tile brings for a product
  // exceed those of 256x192 by.
  void settle();
};

inline constexpr double power_share = 0.083;
inline constexpr double power_limited_flops = 550e12;  // in a second, of the best kernel of a cell

// Throws std::runtime_error that names the file, if it can't be read or holds something else.
TileMeasurement read_tile_measurement(const std::string& path);

}  // namespace gatefold::bench
