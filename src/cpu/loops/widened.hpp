#pragma once

#include "cpu/loops/tile.hpp"

// 16-bit elements that are brought into fp32 before they are multiplied: x for a tile's tokens, and, with many tokens,
// a block of the panel's weights.
namespace gatefold::cpu {
namespace {

// From so many tokens on a block's weights are widened once for all of them. That costs what 6 to 10 tokens do, and
// takes the conversions, one beside three products (fp16) or six (bf16), out of each tile (docs/kernels/cpu_log.md).
constexpr std::int64_t widened_from = 48;

// A panel's widened block is 256 KiB, in which 16-bit elements would be 128, beside those that are fetched for the next
// one. Where a conversion is one instruction, that pays in a second-level cache of 2 MiB, and costs 5 to 20 % in one of
// 512 KiB.
constexpr std::int64_t widened_in_2_mib = std::int64_t{2} << 20;

// Floats from one widened row to the next: not a multiple of 4 KiB, whose lines would compete for one set of the cache.
template <class Policy>
constexpr std::int64_t widened_stride = Policy::k_block + 16;

// Both factors as they lie in the scratch, where zeros fill the last step.
template <class Policy>
struct Widened : Policy {
  using Element = float;
  static constexpr int tile_tokens = Policy::widened_tokens;
  static constexpr int parts = 1;
  static constexpr std::int64_t step = Policy::lanes;

  static GATEFOLD_LOOP typename Policy::Operand load(const float* from, int /*part*/) {
    return Policy::load_widened(from);
  }
  static GATEFOLD_LOOP typename Policy::Operand load_rest(const float* from, int /*part*/, int /*count*/) {
    return Policy::load_widened(from);
  }
};

// Elements in the order of the policy's vectors, in fp32, zeros after the last one.
template <class Policy>
GATEFOLD_LOOP void widen_row(const typename Policy::Element* row, std::int64_t count, float* out) {
  std::int64_t k = 0;
  for (; k + Policy::step <= count; k += Policy::step) {
    for (int part = 0; part < Policy::parts; ++part) {
      Policy::store(out + k + part * Policy::lanes, Policy::load(row + k, part));
    }
  }
  if (k == count) return;
  for (int part = 0; part < Policy::parts; ++part) {
    Policy::store(out + k + part * Policy::lanes, Policy::load_rest(row + k, part, static_cast<int>(count - k)));
  }
}

// The scratch of a kernel that reads x not in place: x of a tile, then the weights.
template <class Policy>
struct WidenedScratch {
  static constexpr std::int64_t stride = widened_stride<Policy>;
  static constexpr std::int64_t tokens =
      Policy::tile_tokens < Policy::widened_tokens ? Policy::widened_tokens : Policy::tile_tokens;
  static constexpr std::int64_t row_bytes = stride * static_cast<std::int64_t>(sizeof(float));

  float* first;

  GATEFOLD_LOOP explicit WidenedScratch(std::byte* scratch) : first(reinterpret_cast<float*>(scratch)) {}
  GATEFOLD_LOOP float* token(std::int64_t t) const { return first + t * stride; }
  GATEFOLD_LOOP float* row(std::int64_t r) const { return first + (tokens + r) * stride; }
};

template <class Policy>
GATEFOLD_LOOP TileTokens<float> widen_tokens(const PanelProduct& p, const Block& block, std::int64_t token,
                                             std::int64_t count) {
  using Element = typename Policy::Element;
  const WidenedScratch<Policy> scratch(p.scratch);
  const auto* x = reinterpret_cast<const Element*>(p.x + token * p.x_stride) + block.begin;
  const std::int64_t stride = p.x_stride / static_cast<std::int64_t>(sizeof(Element));
  for (std::int64_t t = 0; t < count; ++t) widen_row<Policy>(x + t * stride, block.count, scratch.token(t));
  return {scratch.token(0), scratch.stride};
}

template <class Policy>
void widen_weights(const PanelProduct& p, const Block& block) {
  const WidenedScratch<Policy> scratch(p.scratch);
  for (std::int64_t row = 0; row < p.row_count; ++row) {
    const auto* weights = reinterpret_cast<const typename Policy::Element*>(p.rows[row]) + block.begin;
    widen_row<Policy>(weights, block.count, scratch.row(row));
  }
}

}  // namespace
}  // namespace gatefold::cpu
