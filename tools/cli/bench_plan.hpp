#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "cli/timing.hpp"
#include "cli/way.hpp"

namespace gatefold::cli {

// What was asked for on the command line.
struct BenchOptions {
  std::vector<std::string> ops{"gate_up"};
  std::vector<std::string> models;
  std::int64_t tp = 1;
  std::vector<std::int64_t> tokens;
  std::vector<std::string> providers;
  std::vector<std::string> peers;  // NAME=FILE
  std::string dtype = "bf16";
  std::string layout = "separate";
  std::string device = "auto";
  std::string implementation;
  std::uint64_t seed = 0;
  std::int64_t chunk = 0;  // of mlp's tokens; 0: all at once
  bool batch_invariant = false;
  bool roofline = false;
  double seconds = 0.0;  // after which no further cell begins; 0: all do
  TimingOptions timing;
  OutputOptions output;
};

// What is measured, checked before anything is.
struct BenchPlan {
  explicit BenchPlan(const BenchOptions& options);  // throws checkpoint::InputError

  Block block(const Shape& shape, std::int64_t token_count) const;
  const Provider& provider(const std::string& name) const;  // one of `providers`

  gatefold_device device;
  gatefold_dtype dtype;
  Layout layout;
  std::string implementation;
  std::int64_t chunk;
  bool batch_invariant;
  std::vector<gatefold_op> ops;
  std::vector<Shape> shapes;
  std::vector<std::int64_t> tokens;
  std::vector<Provider> providers;
};

}  // namespace gatefold::cli
