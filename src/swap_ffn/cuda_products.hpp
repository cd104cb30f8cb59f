#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/implementation.hpp"
#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

// The step's product with w_down on a GPU, whose sums are four times as long as gate_up's: at B = 1 it is 32 tiles of
// 128x128. Where a launch would leave half of the multiprocessors without a tile, blocks divide the sums.
class CudaDown {
 public:
  explicit CudaDown(const Config& config);
  std::size_t workspace_size(std::int64_t rows) const;
  Status run(const Operands& operands) const;

 private:
  std::int64_t columns_;
  std::unique_ptr<gatefold::Executor> whole_;
  std::unique_ptr<gatefold::Executor> halves_;  // these may be null
  std::unique_ptr<gatefold::Executor> narrow_halves_;
};

}  // namespace gatefold::swap_ffn
