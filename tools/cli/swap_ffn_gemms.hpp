#pragma once

#include <cstddef>

#include "cli/backend.hpp"
#include "cli/swap_ffn_data.hpp"

namespace gatefold::cli {

// The MLPs' products of a step alone, by the library's gemm: gate, up and down, as often as a step has them. What a
// step would take if all else were free, and gate and up were two products.
class SwapFfnGemms {
 public:
  SwapFfnGemms(const SwapFfnData& data, Backend& backend);
  void enqueue() const;

 private:
  const SwapFfnData& data_;
  Backend& backend_;
  Plan wide_, narrow_;  // [D -> F] and [F -> D]
  DeviceBuffer workspace_;
  std::size_t workspace_bytes_;
  DeviceBuffer gate_w_, up_w_, down_w_;
  DeviceBuffer n_, gate_, up_, s_;
};

}  // namespace gatefold::cli
