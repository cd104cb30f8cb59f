#pragma once

#include "cpu/loops/streams.hpp"
#include "cpu/loops/widened.hpp"

// The loops over a panel, for a policy of one element type and one instruction set (tile.hpp):
//
//   for each block of k_block elements of the sums          the same blocks for any number of tokens
//     for each tile_tokens rows of x                        they stay in the first-level cache
//       for each 4 rows of weights                          from memory the first time, then from the second-level
//       cache
//         for each step of the block                        4 x tile_tokens accumulators of one vector each
//         fold the accumulators, add them to the sums
//
// or, where the tokens fit one tile (streamed_tokens), for every 4 rows all blocks of k. Where the caller wants it
// (PanelProduct::widens) 16-bit weights are brought into fp32 first, block by block.
namespace gatefold::cpu {
namespace {

// x of a tile's tokens in one block of the sums, where it lies or in the scratch.
template <class Policy>
GATEFOLD_LOOP auto tokens_at(const PanelProduct& p, const Block& block, std::int64_t token, std::int64_t count) {
  using Element = typename Policy::Element;
  if constexpr (Policy::in_place) {
    const auto* x = reinterpret_cast<const Element*>(p.x + token * p.x_stride) + block.begin;
    return TileTokens<Element>{x, p.x_stride / static_cast<std::int64_t>(sizeof(Element))};
  } else {
    return widen_tokens<Policy>(p, block, token, count);
  }
}

// Some tokens of a panel with a block of the sums' terms.
struct Pass {
  Block block;
  std::int64_t token;
  std::int64_t tokens;
  bool streamed;  // its rows come from memory, in streams
  bool asks;      // for later rows
};

// All rows of a panel with a tile's tokens. rows_of: a tile's rows, by its first one.
template <class Policy, int tokens, class X, class RowsOf>
GATEFOLD_LOOP void multiply_rows(const PanelProduct& p, const Pass& pass, const TileTokens<X>& x, Later& later,
                                 RowsOf rows_of) {
  const bool first = pass.block.begin == 0;
  for (std::int64_t row = 0; row < p.row_count; row += tile_rows_of) {
    const TileRows<Policy> rows = rows_of(row);
    float* out = p.sums + row * p.tokens + pass.token * tile_rows_of;
    TileAhead ahead{};
    switch (pass.asks ? later.take(ahead.then) : 0) {
      case 0: multiply_tile<Policy, tokens, 0>(rows, ahead, x, pass.block.count, out, first); break;
      case 1: multiply_tile<Policy, tokens, 1>(rows, ahead, x, pass.block.count, out, first); break;
      default: multiply_tile<Policy, tokens, 2>(rows, ahead, x, pass.block.count, out, first); break;
    }
  }
}

// Rows as they are stored.
template <class Policy, int tokens, class X>
void multiply_stored_rows(const PanelProduct& p, const Pass& pass, const TileTokens<X>& x, Later& later) {
  if constexpr (first_in_streams<Policy>) {
    if (pass.streamed) return multiply_first_rows<Policy, tokens>(p, pass.block, x);
  }
  multiply_rows<Policy, tokens>(p, pass, x, later,
                                [&](std::int64_t row) { return rows_at<Policy>(p.rows + row, 1, pass.block.begin); });
}

// Rows that were widened.
template <class Policy, int tokens>
void multiply_widened_rows(const PanelProduct& p, const Pass& pass, const TileTokens<float>& x, Later& later) {
  using Wide = Widened<Policy>;
  const WidenedScratch<Policy> scratch(p.scratch);
  Pass steps = pass;  // whole ones, filled with zeros
  steps.block.count = (pass.block.count + Policy::step - 1) / Policy::step * Policy::step;
  multiply_rows<Wide, tokens>(p, steps, x, later, [&](std::int64_t row) {
    return TileRows<Wide>{scratch.row(row), scratch.row(row + 1), scratch.row(row + 2), scratch.row(row + 3)};
  });
}

// function.operator()<tokens>(): the number that the template of a tile's loops wants, at most `most`.
template <int most, class Function>
GATEFOLD_LOOP void with_tokens(std::int64_t count, Function function) {
  constexpr auto limited = [](int tokens) { return tokens < most ? tokens : most; };
  switch (count) {
    case 1: function.template operator()<limited(1)>(); break;
    case 2: function.template operator()<limited(2)>(); break;
    case 3: function.template operator()<limited(3)>(); break;
    case 4: function.template operator()<limited(4)>(); break;
    case 5: function.template operator()<limited(5)>(); break;
    default: function.template operator()<most>(); break;
  }
}

// The tokens of a panel in tiles, of which the first may read rows in streams, and the others, or some, ask for later
// ones.
struct Passes {
  std::int64_t count;
  bool first_in_streams;
  std::int64_t asking;
};

template <class Policy>
GATEFOLD_LOOP std::int64_t tiles_of(const PanelProduct& p) {
  return (p.tokens + Policy::tile_tokens - 1) / Policy::tile_tokens;
}

template <class Policy>
GATEFOLD_LOOP Passes passes_of(const PanelProduct& p) {
  const std::int64_t count = tiles_of<Policy>(p);
  const bool long_rows = p.depth >= 2 * Policy::k_block;  // of others a stream hardly breaks off
  if (first_in_streams<Policy> && (!long_rows || count <= Policy::streamed_passes)) return {count, true, count - 1};
  return {count, false, count < Policy::asking_passes ? count : Policy::asking_passes};
}

// function(pass): tiles as even as can be: one of one or two tokens waits for its own sums.
template <class Function>
GATEFOLD_LOOP void for_each_pass(const PanelProduct& p, const Block& block, const Passes& passes, Function function) {
  const std::int64_t in_streams = passes.first_in_streams ? 1 : 0;
  std::int64_t token = 0;
  for (std::int64_t i = 0; i < passes.count; ++i) {
    const std::int64_t count = (p.tokens - token + passes.count - i - 1) / (passes.count - i);
    function(Pass{block, token, count, i < in_streams, i >= in_streams && i < in_streams + passes.asking});
    token += count;
  }
}

template <class Policy>
void multiply_stored(const PanelProduct& p) {
  const Passes passes = passes_of<Policy>(p);
  Later later = later_rows<Policy>(p, passes.asking);
  for (std::int64_t begin = 0; begin < p.depth; begin += Policy::k_block) {
    for_each_pass(p, block_from<Policy>(begin, p.depth), passes, [&](const Pass& pass) {
      const auto x = tokens_at<Policy>(p, pass.block, pass.token, pass.tokens);
      with_tokens<Policy::tile_tokens>(pass.tokens,
                                       [&]<int tokens>() { multiply_stored_rows<Policy, tokens>(p, pass, x, later); });
    });
  }
}

template <class Policy>
void multiply_widened(const PanelProduct& p) {
  using Wide = Widened<Policy>;
  const std::int64_t count = tiles_of<Wide>(p);
  const Passes passes{count, false, count};
  Later later = later_rows<Policy>(p, passes.asking);
  for (std::int64_t begin = 0; begin < p.depth; begin += Policy::k_block) {
    const Block block = block_from<Policy>(begin, p.depth);
    widen_weights<Policy>(p, block);
    for_each_pass(p, block, passes, [&](const Pass& pass) {
      const auto x = widen_tokens<Policy>(p, block, pass.token, pass.tokens);
      with_tokens<Wide::tile_tokens>(pass.tokens,
                                     [&]<int tokens>() { multiply_widened_rows<Policy, tokens>(p, pass, x, later); });
    });
  }
}

template <class Policy>
void multiply_fetching(const PanelProduct& p) {
  static_assert(Policy::k_block % Policy::step == 0 && Policy::step == Policy::lanes * Policy::parts * Policy::pairs);
  static_assert(Policy::tile_tokens >= 1 && Policy::tile_tokens <= Policy::streamed_tokens);
  static_assert(Policy::streamed_tokens <= 6);
  if (p.tokens <= Policy::streamed_tokens) {
    return with_tokens<Policy::streamed_tokens>(p.tokens, [&]<int tokens>() { multiply_streams<Policy, tokens>(p); });
  }
  if constexpr (!Policy::in_place) {
    if (p.widens) return multiply_widened<Policy>(p);
  }
  multiply_stored<Policy>(p);
}

template <class Policy>
void multiply_panel(const PanelProduct& p) {
  if (p.fetch == Fetch::to_second_level) return multiply_fetching<FetchedToSecondLevel<Policy>>(p);
  if constexpr (Policy::lanes == 16) {  // by AVX2 it is 1 to 3 % slower
    if (p.fetch == Fetch::at_a_pace) return multiply_fetching<FetchedAtAPace<Policy>>(p);
  }
  multiply_fetching<FetchedToFirstLevel<Policy>>(p);
}

template <class Policy>
constexpr Kernel make_kernel(const char* name, DType dtype) {
  Kernel kernel{.name = name,
                .dtype = dtype,
                .tile_rows = tile_rows_of,
                .tile_tokens = Policy::tile_tokens,
                .scratch_bytes = 0,
                .multiply = multiply_panel<Policy>,
                .x_in_place = Policy::in_place,
                .block_bytes = Policy::k_block * static_cast<std::int64_t>(sizeof(typename Policy::Element)),
                .streamed_tokens = Policy::streamed_tokens};
  if constexpr (!Policy::in_place) {
    using Scratch = WidenedScratch<Policy>;
    kernel.scratch_bytes = Scratch::tokens * Scratch::row_bytes;
    kernel.widened_from = widened_from;
    kernel.widened_cache = Policy::widened_cache;
    kernel.widened_rows = 65536 / Policy::k_block;
    kernel.widened_row_bytes = Scratch::row_bytes;
  }
  return kernel;
}

}  // namespace
}  // namespace gatefold::cpu
