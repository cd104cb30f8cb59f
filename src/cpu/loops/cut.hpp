#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "cpu/cpu_info.hpp"
#include "cpu/loops/kernel.hpp"

// How a run's output is cut into items, each of which one thread computes.
namespace gatefold::cpu {

constexpr std::int64_t most_chunk = 2048;          // tokens, of which x is packed or copied at a time
constexpr std::int64_t small_first_level = 32768;  // bytes: x of a tile takes 24576
constexpr std::int64_t sums_granule = 16;          // of elements that the activations work on at a time

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

Fetch fetch_for(const Caches& caches);

// Items of `rows` columns by `tokens` tokens.
struct Division {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  std::int64_t panels = 0;
  std::int64_t blocks = 0;

  std::int64_t items() const { return panels * blocks; }
};

// What is packed in groups of tokens: x, and the output, where it is an mlp's h.
struct Packing {
  bool x = false;
  bool out = false;
};

struct Cut {
  std::int64_t columns;
  std::int64_t row_bytes;          // of weights
  std::int64_t halves;             // whose sums an item holds
  std::int64_t multiplied_halves;  // of which so many are products
  std::int64_t threads;
  Caches caches;
  const Kernel& kernel;

  // Whether tokens are packed for sums of so many terms: by outer products where they pay.
  bool packs(std::int64_t tokens, std::int64_t terms) const;
  bool packs_x(std::int64_t tokens) const { return packs(tokens, row_bytes / size_of(kernel.dtype)); }

  // Whether packed x is multiplied by outer products; else by the matrix unit.
  bool multiplies_outer(Packing packing) const { return packing.x && kernel.outer.from > 0; }

  // Rows of a half come in so many: then a panel has whole tiles, or 64 packed rows, and its halves have whole granules
  // of sums.
  std::int64_t row_unit(Packing packing) const;

  // Of an item: tokens come in blocks of up to so many, which begin where a tile and a packed group do.
  std::int64_t token_unit(Packing packing) const;
  std::int64_t most_tokens(Packing packing) const;

  // Of a run: x of so many tokens is packed or copied at a time.
  std::int64_t chunk(std::int64_t tokens, Packing packing) const;
  // Of any run of up to so many tokens whose x is packed, or isn't.
  std::int64_t most_chunk_of(std::int64_t tokens, Packing packing) const;

  // Whether an item of so many tokens brings its weights into fp32 first; with more tokens, too.
  bool widens(std::int64_t tokens) const;

  // Of weights, in a panel with up to so many tokens; with more tokens as many or more, but for those that are
  // streamed.
  std::int64_t panel_rows(std::int64_t tokens) const;

  Division divide(std::int64_t tokens, Packing packing) const;

  // Of an item, however up to so many tokens are divided and whatever is packed: sums, and bytes of the kernel's
  // scratch.
  std::int64_t most_sums_of(std::int64_t tokens) const;
  std::int64_t most_scratch_of(std::int64_t tokens) const;

 private:
  // Of an item of up to so many tokens, whatever is packed.
  std::int64_t most_tokens_of(std::int64_t tokens) const;
};

}  // namespace gatefold::cpu
