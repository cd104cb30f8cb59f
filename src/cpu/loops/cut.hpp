#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "cpu/loops/kernel.hpp"

// How a run's output is cut into items, each of which one thread computes.
namespace gatefold::cpu {

constexpr std::int64_t most_chunk = 2048;  // tokens, of which x is packed or copied at a time
constexpr std::int64_t sums_granule = 16;  // of elements that the activations work on at a time

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

// Items of `rows` columns by `tokens` tokens.
struct Division {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  std::int64_t panels = 0;
  std::int64_t blocks = 0;

  std::int64_t items() const { return panels * blocks; }
};

struct Cut {
  std::int64_t columns;
  std::int64_t row_bytes;          // of weights
  std::int64_t halves;             // whose sums an item holds
  std::int64_t multiplied_halves;  // of which so many are products
  std::int64_t threads;
  std::int64_t second_level;  // bytes of a core's cache; 0: not known
  const Kernel& kernel;

  // Rows of a half come in so many: then a panel has whole tiles, and its halves have whole granules of sums.
  std::int64_t row_unit() const;

  // Of an item: tokens come in blocks of up to so many, which begin where a tile and a packed group do.
  std::int64_t token_unit() const { return std::max(kernel.tile_tokens, kernel.packed_tokens); }
  std::int64_t most_tokens() const { return round_up(kernel.packed_tokens > 0 ? 512 : 256, token_unit()); }

  // Whether an item of so many tokens brings its weights into fp32 first; with more tokens, too.
  bool widens(std::int64_t tokens) const;

  // Of weights, in a panel with up to so many tokens; with more tokens as many or more.
  std::int64_t panel_rows(std::int64_t tokens) const;

  Division divide(std::int64_t tokens) const;

  // Of an item, however up to so many tokens are divided: sums, and bytes of the kernel's scratch.
  std::int64_t most_sums_of(std::int64_t tokens) const;
  std::int64_t most_scratch_of(std::int64_t tokens) const;
};

}  // namespace gatefold::cpu
