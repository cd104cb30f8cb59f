#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cli/backend.hpp"
#include "cli/block.hpp"
#include "cli/way.hpp"

namespace gatefold::cli {

struct Difference {
  double max_abs = 0.0;
  double mean_abs = 0.0;
  double relative = 0.0;  // ||a - b|| / ||b||; 0 if both are equal
};
Difference difference(std::span<const std::byte> a, std::span<const std::byte> b, gatefold_dtype dtype);

// x, the weights of gate and up and the biases that the block has, Kaiming-uniform, on the host and on the device.
class RandomBlock {
 public:
  RandomBlock(Backend& backend, const Block& block, std::uint64_t seed);

  const Block& block() const { return block_; }
  std::vector<std::byte> compute(const Way& way) const;  // h, on the host
  Tensors host() const;

 private:
  Backend& backend_;
  Block block_;
  std::vector<std::byte> x_, gate_, up_;  // a packed layout has no up_
  std::vector<std::byte> gate_bias_, up_bias_;
  DeviceBuffer device_x_, device_gate_, device_up_, device_gate_bias_, device_up_bias_;
};

// Holds h against double precision: all of a small one; of a large one sampled rows and columns, among them those of
// the last tile, whatever its size is.
class SampledCheck {
 public:
  explicit SampledCheck(const RandomBlock& data);
  gatefold_error_report operator()(std::span<const std::byte> h) const;

 private:
  using Indices = std::vector<std::int64_t>;
  std::vector<std::byte> gather(const std::byte* from, std::int64_t ld, const Indices& rows) const;

  const Block& block_;
  bool sampled_;
  Indices rows_, columns_;
  Tensors inputs_;
  std::vector<std::byte> x_, gate_, up_, gate_bias_, up_bias_;  // the sampled rows of each
};

}  // namespace gatefold::cli
