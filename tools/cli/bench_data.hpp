#pragma once

#include <cstdint>
#include <vector>

#include "cli/backend.hpp"
#include "cli/block.hpp"
#include "cli/block_memory.hpp"
#include "cli/way.hpp"

namespace gatefold::cli {

// Random normal elements on the device: zeros would run faster.
DeviceBuffer random_normal(Backend& backend, gatefold_dtype dtype, std::int64_t count, double deviation,
                           std::uint64_t seed);

// One model's weights, so many times over that calls which take them by turns find none in the cache.
class RotatingWeights {
 public:
  RotatingWeights(Backend& backend, const Block& block, bool with_down, std::uint64_t seed);

  // Addresses of the weights alone, for a numbered call.
  Tensors of_call(std::int64_t call) const;

  std::size_t bytes() const { return bytes_; }  // that calls read before they read the first set again

 private:
  struct Set {
    DeviceBuffer gate, up, down;
  };
  std::vector<Set> sets_;
  std::size_t bytes_ = 0;
};

// What the ways of one benchmark cell work on.
class BenchData {
 public:
  // `weights` is null for act_and_mul, whose operands take turns instead.
  BenchData(Backend& backend, gatefold_op op, const Block& block, const std::vector<Way>& ways,
            const RotatingWeights* weights, std::uint64_t seed);

  Tensors of_call(std::int64_t call) const;

 private:
  const RotatingWeights* weights_;
  DeviceBuffer x_;
  std::vector<BlockMemory> memory_;
};

}  // namespace gatefold::cli
