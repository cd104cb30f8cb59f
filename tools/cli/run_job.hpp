#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/accuracy.hpp"
#include "cli/block_memory.hpp"
#include "cli/input.hpp"
#include "cli/layer_weights.hpp"
#include "cli/progress.hpp"
#include "cli/way.hpp"

namespace gatefold::cli {

struct RunOptions {
  std::string checkpoint;
  std::int64_t layer = 0;
  std::optional<std::int64_t> tokens;
  std::string input;
  std::string output;
  std::string activation;
  std::string device = "auto";
  std::string implementation;
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> check_rows;
  bool whole_block = false;
  TimingOptions timing;
  OutputOptions table;
};

// One way to compute a part of the block, and what became known of it.
struct Line {
  std::string name;
  Way way;
  Samples samples;
  Accuracy accuracy;
};

// One layer of a checkpoint, computed every way, timed and checked.
class RunJob {
 public:
  explicit RunJob(const RunOptions& options);  // throws on whatever is wrong with the input
  void run();

  const Block& block() const { return block_; }
  Json describe_device() const { return backend_->describe(); }
  std::size_t weight_bytes() const { return weights_.bytes(); }
  std::uint64_t seed() const { return seed_; }
  const RowSample& checked_rows() const { return checked_rows_; }

  // The ways to h, then down_proj, then mlp, which is gate_up and down_proj.
  const std::vector<Line>& lines_to_h() const { return to_h_; }
  const Line& down() const { return down_; }
  const Line& mlp() const { return mlp_; }

  void write_output(const std::string& file) const;  // h and y, of gate_up and down_proj

 private:
  void first_half();
  void second_half();
  void check_mlp();
  void add_up_mlp();
  void time(const std::vector<Line*>& lines);
  std::size_t workspace_size() const;
  Tensors device_tensors() const;
  HostView host_view() const;

  const RunOptions& options_;
  checkpoint::MlpLayer layer_;
  std::uint64_t seed_;
  Block block_;
  Input input_;
  RowSample checked_rows_;
  std::unique_ptr<Backend> backend_;
  LayerWeights weights_;
  DeviceBuffer x_;
  std::vector<Line> to_h_;
  Line down_, mlp_;
  std::optional<BlockMemory> memory_;
  Checker checker_;
  Progress progress_;
};

}  // namespace gatefold::cli
