#pragma once

#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

// Validated pointers of gatefold_swap_ffn_check_args.
struct CheckOperands {
  std::int64_t batch = 0;
  const std::byte* x = nullptr;
  const std::byte* ram_before = nullptr;
  const std::uint8_t* stream_map_before = nullptr;
  const std::byte* ram = nullptr;
  const std::uint8_t* stream_map = nullptr;
  const std::byte* delta = nullptr;
  const std::byte* states = nullptr;
  const std::uint8_t* decisions = nullptr;
};
gatefold_swap_ffn_report check(const Config& config, const Weights& weights, const CheckOperands& operands,
                               bool zero_mean);

}  // namespace gatefold::swap_ffn
