#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.hpp"
#include "gatefold/swap_ffn.h"

namespace gatefold::swap_ffn {

constexpr std::int64_t banks = GATEFOLD_SWAP_FFN_BANKS;

// A validated description.
struct Config {
  DType dtype = DType::fp32;
  Device device = Device::cpu;
  std::int64_t hidden_size = 0;        // D
  std::int64_t intermediate_size = 0;  // F
  std::int64_t cores = 0;              // C
  std::int64_t core_embed_size = 0;    // E
  std::int64_t router_width = 0;       // R
  std::int64_t collapse_heads = 0;     // K
  std::int64_t collapse_width = 0;     // Rc
  std::int64_t events = 0;
  std::int64_t k_ffn = 0;
  double eps = 0.0;

  std::int64_t row_bytes() const { return hidden_size * size_of(dtype); }  // of one row of s, ram, x or delta
  std::int64_t slices() const { return 1 + events * k_ffn; }               // of the states that a step may keep
};

enum Weight : std::uint8_t {
  core_embed,
  scale_w,
  scale_b,
  shift_w,
  shift_b,
  alpha_w,
  alpha_b,
  router_norm,
  router_w,
  router_swap_w,
  router_swap_b,
  bank_w,
  bank_b,
  ffn_norm,
  gate_w,
  up_w,
  down_w,
  basis,
  decoder,
};
constexpr std::size_t weight_count = GATEFOLD_SWAP_FFN_WEIGHTS;

// Validated pointers, by Weight.
using Weights = std::array<const std::byte*, weight_count>;

// Name and shape of a weight.
gatefold_swap_ffn_tensor tensor_of(const Config& config, Weight weight);

inline std::int64_t elements(const gatefold_swap_ffn_tensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : std::span(tensor.shape, static_cast<std::size_t>(tensor.rank))) count *= extent;
  return count;
}

// The lane of a map's entry, and the map with lane 0 and another exchanged.
constexpr unsigned lane(std::uint8_t map, unsigned index) { return (map >> (2 * index)) & 3U; }
constexpr std::uint8_t exchange_lanes(std::uint8_t map, unsigned choice) {
  const unsigned difference = lane(map, 0) ^ lane(map, choice);
  return static_cast<std::uint8_t>(map ^ difference ^ (difference << (2 * choice)));
}
constexpr bool is_permutation(std::uint8_t map) {
  return ((1U << lane(map, 0)) | (1U << lane(map, 1)) | (1U << lane(map, 2)) | (1U << lane(map, 3))) == 15U;
}

constexpr std::uint8_t swapped = 4;  // beside the choice in a decision

// argmax as PyTorch has it: the first of equals, and a NaN is the largest.
template <class Number>
unsigned first_largest(const std::array<Number, banks>& values) {
  unsigned best = 0;
  for (unsigned i = 1; i < banks; ++i) {
    const bool is_nan = std::isnan(values[i]);
    const bool best_is_nan = std::isnan(values[best]);
    if (values[i] > values[best] || (is_nan && !best_is_nan)) best = i;
  }
  return best;
}

}  // namespace gatefold::swap_ffn
