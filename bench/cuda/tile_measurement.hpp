#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

// What bench_sm90_tiles has measured: results/h200/sm90_tiles.json.
namespace gatefold::bench {

// One product's time by every kernel.
struct TileCell {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t tokens = 0;
  // By the kernel's name; only of kernels that ran until they were settled. The others were more than 12 % slower than
  // the best.
  std::map<std::string, double> microseconds;

  double best() const;  // the least time

  // How much longer a kernel takes than the best, as a fraction; 0.12, the least it can be, of one that wasn't settled.
  double regret(const std::string& kernel) const;
};

struct TileMeasurement {
  std::vector<TileCell> cells;
  std::set<std::string> kernels;
};

// Throws std::runtime_error that names the file, if it can't be read or holds something else.
TileMeasurement read_tile_measurement(const std::string& path);

}  // namespace gatefold::bench
