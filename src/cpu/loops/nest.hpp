#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/loops/kernel.hpp"

// The loops over a panel, for a policy of one element type and one instruction set:
//
//   for each block of k_block elements of the sums          the same blocks for any number of tokens
//     for each tile_tokens rows of x                        they stay in the first-level cache
//       for each 4 rows of weights                          from memory the first time, then from the second-level
//       cache
//         for each step of the block                        4 x tile_tokens accumulators of one vector each
//         fold the accumulators, add them to the sums
//
// or, where the tokens fit one tile (streamed_tokens), for every 4 rows all blocks of k.
//
// Every source that includes this is compiled with an instruction set's own flags. So all of it is in an unnamed
// namespace, and nothing here or in a policy calls an inline function of anybody else: of several copies the linker
// keeps one, for every machine.
//
// A policy has:
//   Element                   as it is stored
//   Vector                    of `lanes` sums in fp32
//   Operand                   of `step` / `parts` factors
//   tile_tokens               of a tile, whose accumulators and factors fit the registers
//   streamed_tokens           of the one tile there is where no more tokens come: memory is slower than registers that
//                             are stored and loaded
//   in_place                  x is read as it is stored; else it is brought into fp32 once for each panel, or, where
//   its
//                             tokens fit one tile, again for every 4 rows
//   parts                     vectors that a step's elements are spread over, where 16 bits become 32
//   load, load_rest           one part of a step, of a step's first `count` elements
//   multiply_add              element by element
//   add_sums                  the fold: the same additions in the same order for every row and token
namespace gatefold::cpu {
namespace {

#define GATEFOLD_LOOP __attribute__((always_inline)) inline

constexpr std::int64_t tile_rows_of = tile_rows_of_weights;

template <class A, class B>
constexpr bool same_type = false;
template <class A>
constexpr bool same_type<A, A> = true;

template <class Policy>
struct TileRows {
  const typename Policy::Element* row[tile_rows_of];
};

// X: the policy's elements, as they are stored, or fp32.
template <class X>
struct TileTokens {
  const X* first;
  std::int64_t stride;  // elements
};

template <class Policy, class X>
GATEFOLD_LOOP typename Policy::Operand load_x(const X* x, int part) {
  if constexpr (same_type<X, typename Policy::Element>) {
    return Policy::load(x, part);
  } else {
    return Policy::load_widened(x + part * Policy::lanes);
  }
}

template <class Policy, class X>
GATEFOLD_LOOP typename Policy::Operand load_x_rest(const X* x, int part, int count) {
  if constexpr (same_type<X, typename Policy::Element>) {
    return Policy::load_rest(x, part, count);
  } else {
    return Policy::load_widened(x + part * Policy::lanes);  // zeros follow the last element
  }
}

// One step of a tile. `count` is the step's elements, or 0 for all of them.
template <class Policy, int tokens, bool rest, class X>
GATEFOLD_LOOP void multiply_step(const TileRows<Policy>& rows, const TileTokens<X>& x, std::int64_t k, int count,
                                 typename Policy::Vector (&sums)[tokens][tile_rows_of]) {
#pragma GCC unroll 4
  for (int part = 0; part < Policy::parts; ++part) {
    typename Policy::Operand factors[tokens];
#pragma GCC unroll 8
    for (int t = 0; t < tokens; ++t) {
      const auto* at = x.first + t * x.stride + k;
      factors[t] = rest ? load_x_rest<Policy>(at, part, count) : load_x<Policy>(at, part);
    }
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) {
      const auto* at = rows.row[r] + k;
      const typename Policy::Operand weights = rest ? Policy::load_rest(at, part, count) : Policy::load(at, part);
#pragma GCC unroll 8
      for (int t = 0; t < tokens; ++t) sums[t][r] = Policy::multiply_add(weights, factors[t], sums[t][r]);
    }
  }
}

// Whole steps from k on that end before `end`; where they end. The first `fetched` of the rows ahead are asked for on
// the way.
template <class Policy, int tokens, int fetched, class X>
GATEFOLD_LOOP std::int64_t multiply_steps(const TileRows<Policy>& rows, const TileRows<Policy>& ahead,
                                          const TileTokens<X>& x, std::int64_t k, std::int64_t end,
                                          typename Policy::Vector (&sums)[tokens][tile_rows_of]) {
  for (; k + Policy::step <= end; k += Policy::step) {
#pragma GCC unroll 4
    for (int r = 0; r < fetched; ++r) __builtin_prefetch(ahead.row[r] + k, 0, Policy::fetch_locality);
    multiply_step<Policy, tokens, false>(rows, x, k, 0, sums);
  }
  return k;
}

// Rows that are asked for during a tile: the first ones until element `turn`, then the others.
template <class Policy>
struct TileAhead {
  TileRows<Policy> first;
  TileRows<Policy> then;
  std::int64_t turn;
};

// sums[t][r] (+)= x[t] . rows[r] over `count` elements.
template <class Policy, int tokens, int fetched, class X>
GATEFOLD_LOOP void multiply_tile(const TileRows<Policy>& rows, const TileAhead<Policy>& ahead, const TileTokens<X>& x,
                                 std::int64_t count, float* out, bool first) {
  typename Policy::Vector sums[tokens][tile_rows_of];
#pragma GCC unroll 8
  for (int t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) sums[t][r] = Policy::zero();
  }
  std::int64_t k = 0;
  if constexpr (fetched > 0) k = multiply_steps<Policy, tokens, fetched>(rows, ahead.first, x, k, ahead.turn, sums);
  k = multiply_steps<Policy, tokens, fetched>(rows, ahead.then, x, k, count, sums);
  if (k < count) multiply_step<Policy, tokens, true>(rows, x, k, static_cast<int>(count - k), sums);
  Policy::template add_sums<tokens>(sums, out, first);
}

// A tile's rows, so many apart in a panel, from element `begin` on.
template <class Policy>
GATEFOLD_LOOP TileRows<Policy> rows_at(const std::byte* const* of_panel, std::int64_t apart, std::int64_t begin) {
  TileRows<Policy> rows;
  for (int r = 0; r < tile_rows_of; ++r) {
    rows.row[r] = reinterpret_cast<const typename Policy::Element*>(of_panel[r * apart]) + begin;
  }
  return rows;
}

struct Block {
  std::int64_t begin;
  std::int64_t count;
};

template <class Policy>
GATEFOLD_LOOP Block block_from(std::int64_t begin, std::int64_t depth) {
  return {begin, depth - begin < Policy::k_block ? depth - begin : Policy::k_block};
}

// How rows that come from memory are asked for ahead of their use: into which cache, how far ahead of a row's own use,
// and from how many tiles of tokens on by those after the first. What is asked for into a first-level cache of 32 KiB,
// of which x takes 24, drives x out of it (docs/kernels/cpu_log.md).
template <class Policy>
struct FetchedToFirstLevel : Policy {
  static constexpr int fetch_locality = 3;
  static constexpr std::int64_t lead_bytes = 1024;
  static constexpr std::int64_t asking_from = 4;
};
template <class Policy>
struct FetchedToSecondLevel : Policy {
  static constexpr int fetch_locality = 2;
  static constexpr std::int64_t lead_bytes = 2048;
  static constexpr std::int64_t asking_from = 2;
};

// Whether a block of the first tokens' rows is read in streams of its own (multiply_first_rows): not with blocks of
// less than 4 KiB, whose streams break off too often.
template <class Policy>
constexpr bool first_in_streams = Policy::k_block * static_cast<std::int64_t>(sizeof(typename Policy::Element)) >= 4096;

// The rows that tiles ask for ahead of their turn: those of this panel, block by block, then the first block of the
// next panel's. They are a whole block further, and spread over all tiles, so that memory is read while later tokens
// are multiplied, not only during the first ones. Where the first tokens read in streams, only later ones ask: lines
// that are asked for while many are on their way are forgotten.
struct Later {
  const PanelProduct& panel;
  std::int64_t k_block;
  std::int64_t passes;     // over the rows of a block that ask, each with a tile's tokens; 0: none asks
  std::int64_t begin = 0;  // of the block that they are in
  std::int64_t row = 0;    // the next one
  std::int64_t due = 0;    // in parts of a row, as many as there are passes
  bool beyond = false;     // this panel

  GATEFOLD_LOOP void start() {
    row = panel.row_count;
    turn_over();
  }

  GATEFOLD_LOOP void turn_over() {
    if (row < panel.row_count) return;
    row -= panel.row_count;
    begin += k_block;
    if (begin < panel.depth) return;
    begin = 0;
    beyond = true;
  }

  // Of the rows that are due with a tile, their addresses to `out`; how many there are: at most two.
  template <class Policy>
  GATEFOLD_LOOP int take(TileRows<Policy>& out) {
    int count = 0;
    if (passes == 0) return count;
    for (due += tile_rows_of; due >= passes; due -= passes) {
      const std::byte* const* rows = beyond ? panel.next_rows : panel.rows;
      if (rows == nullptr) continue;
      out.row[count++] = reinterpret_cast<const typename Policy::Element*>(rows[row]) + begin;
      ++row;
      turn_over();
    }
    return count;
  }
};

// All rows of a panel with a tile's tokens.
template <class Policy, int tokens, class X>
void multiply_rows(const PanelProduct& p, const Block& block, const TileTokens<X>& x, std::int64_t token,
                   Later& later) {
  const bool first = block.begin == 0;
  for (std::int64_t row = 0; row < p.row_count; row += tile_rows_of) {
    const TileRows<Policy> rows = rows_at<Policy>(p.rows + row, 1, block.begin);
    float* out = p.sums + row * p.tokens + token * tile_rows_of;
    TileAhead<Policy> ahead{};
    switch (later.take(ahead.then)) {
      case 0: multiply_tile<Policy, tokens, 0>(rows, ahead, x, block.count, out, first); break;
      case 1: multiply_tile<Policy, tokens, 1>(rows, ahead, x, block.count, out, first); break;
      default: multiply_tile<Policy, tokens, 2>(rows, ahead, x, block.count, out, first); break;
    }
  }
}

// Elements of x in the order of the policy's vectors, in fp32, zeros after the last one.
template <class Policy>
GATEFOLD_LOOP void widen_token(const typename Policy::Element* x, std::int64_t count, float* out) {
  std::int64_t k = 0;
  for (; k + Policy::step <= count; k += Policy::step) {
    for (int part = 0; part < Policy::parts; ++part) {
      Policy::store(out + k + part * Policy::lanes, Policy::load(x + k, part));
    }
  }
  if (k == count) return;
  for (int part = 0; part < Policy::parts; ++part) {
    Policy::store(out + k + part * Policy::lanes, Policy::load_rest(x + k, part, static_cast<int>(count - k)));
  }
}

// Floats from one widened token to the next: not a multiple of 4 KiB, whose lines would compete for one set of the
// cache.
template <class Policy>
constexpr std::int64_t widened_stride = Policy::k_block + 16;

// x of a tile's tokens in one block of the sums, where it lies or in the scratch.
template <class Policy>
GATEFOLD_LOOP auto tokens_at(const PanelProduct& p, const Block& block, std::int64_t token, std::int64_t count) {
  using Element = typename Policy::Element;
  const auto* x = reinterpret_cast<const Element*>(p.x + token * p.x_stride) + block.begin;
  const std::int64_t stride = p.x_stride / static_cast<std::int64_t>(sizeof(Element));
  if constexpr (Policy::in_place) {
    return TileTokens<Element>{x, stride};
  } else {
    auto* widened = reinterpret_cast<float*>(p.scratch);
    for (std::int64_t t = 0; t < count; ++t) {
      widen_token<Policy>(x + t * stride, block.count, widened + t * widened_stride<Policy>);
    }
    return TileTokens<float>{widened, widened_stride<Policy>};
  }
}

// Of Later.
template <class Policy>
GATEFOLD_LOOP std::int64_t asking_passes(std::int64_t passes) {
  if (!first_in_streams<Policy>) return passes;
  return passes >= Policy::asking_from ? passes - 1 : 0;
}

// How far ahead of its use a line is asked for where rows are read from memory.
template <class Policy>
constexpr std::int64_t lead = Policy::lead_bytes / static_cast<std::int64_t>(sizeof(typename Policy::Element));

// The sums of a panel's first tokens with rows that lie `apart`, to and from a tile's own, [tokens][rows].
template <int tokens>
struct SpreadSums {
  const PanelProduct& panel;
  std::int64_t first;  // row
  std::int64_t apart;

  GATEFOLD_LOOP float* of(int r) const {
    const std::int64_t row = first + r * apart;
    return panel.sums + row / tile_rows_of * panel.tokens * tile_rows_of + row % tile_rows_of;
  }
  GATEFOLD_LOOP void load(float* own) const {
    for (int r = 0; r < tile_rows_of; ++r) {
      for (int t = 0; t < tokens; ++t) own[t * tile_rows_of + r] = of(r)[t * tile_rows_of];
    }
  }
  GATEFOLD_LOOP void store(const float* own) const {
    for (int r = 0; r < tile_rows_of; ++r) {
      for (int t = 0; t < tokens; ++t) of(r)[t * tile_rows_of] = own[t * tile_rows_of + r];
    }
  }
};

// Weights that come from memory are read fastest in as many streams as a tile has rows, each of consecutive rows: that
// is what the processor's own fetch follows best. It is helped by asking for lines a little ahead
// (docs/kernels/cpu_log.md).
//
// A panel with the tokens of one tile: each row from one end to the other.
template <class Policy, int tokens>
void multiply_streams(const PanelProduct& p) {
  using Element = typename Policy::Element;
  const std::int64_t apart = p.row_count / tile_rows_of;
  const std::int64_t x_stride = p.x_stride / static_cast<std::int64_t>(sizeof(Element));
  for (std::int64_t row = 0; row < apart; ++row) {
    float sums[tokens * tile_rows_of] = {};
    for (Block block = block_from<Policy>(0, p.depth); block.count > 0;
         block = block_from<Policy>(block.begin + block.count, p.depth)) {
      const TileTokens<Element> x{reinterpret_cast<const Element*>(p.x) + block.begin, x_stride};
      // Beyond a row's end lies the next one, as a rule; after the panel's last rows come the next panel's.
      const bool beyond = row + 1 == apart && block.begin + block.count == p.depth && p.next_rows != nullptr;
      TileAhead<Policy> ahead{rows_at<Policy>(p.rows + row, apart, block.begin + lead<Policy>), {}, block.count};
      if (beyond) ahead.then = rows_at<Policy>(p.next_rows, apart, lead<Policy> - block.count);
      if (beyond) ahead.turn -= lead<Policy>;
      multiply_tile<Policy, tokens, tile_rows_of>(rows_at<Policy>(p.rows + row, apart, block.begin), ahead, x,
                                                  block.count, sums, block.begin == 0);
    }
    SpreadSums<tokens>{p, row, apart}.store(sums);
  }
}

// The first tokens of more: a block of each row.
template <class Policy, int tokens, class X>
void multiply_first_rows(const PanelProduct& p, const Block& block, const TileTokens<X>& x) {
  const std::int64_t apart = p.row_count / tile_rows_of;
  const Block next = block_from<Policy>(block.begin + block.count, p.depth);
  for (std::int64_t row = 0; row < apart; ++row) {
    // After a block of these rows comes that of the next ones, then the next block, then the next panel.
    const bool more_rows = row + 1 < apart;
    const bool beyond = !more_rows && next.count == 0 && p.next_rows != nullptr;
    const std::byte* const* then = more_rows ? p.rows + row + 1 : beyond ? p.next_rows : p.rows;
    const std::int64_t then_begin = more_rows ? block.begin : next.count > 0 ? next.begin : 0;
    const TileAhead<Policy> ahead{rows_at<Policy>(p.rows + row, apart, block.begin + lead<Policy>),
                                  rows_at<Policy>(then, apart, then_begin + lead<Policy> - block.count),
                                  block.count - lead<Policy>};
    const SpreadSums<tokens> of_panel{p, row, apart};
    float sums[tokens * tile_rows_of] = {};
    if (block.begin > 0) of_panel.load(sums);
    multiply_tile<Policy, tokens, tile_rows_of>(rows_at<Policy>(p.rows + row, apart, block.begin), ahead, x,
                                                block.count, sums, block.begin == 0);
    of_panel.store(sums);
  }
}

template <class Policy, int tokens, class X>
GATEFOLD_LOOP void multiply_pass(const PanelProduct& p, const Block& block, const TileTokens<X>& x, std::int64_t token,
                                 Later& later) {
  if constexpr (first_in_streams<Policy>) {
    if (token == 0) return multiply_first_rows<Policy, tokens>(p, block, x);
  }
  multiply_rows<Policy, tokens>(p, block, x, token, later);
}

// The tokens of one pass, as many as the template of its loops wants.
template <class Policy>
GATEFOLD_LOOP void multiply_tokens(const PanelProduct& p, const Block& block, std::int64_t token, std::int64_t count,
                                   Later& later) {
  constexpr auto limited = [](int tokens) { return tokens < Policy::tile_tokens ? tokens : Policy::tile_tokens; };
  const auto x = tokens_at<Policy>(p, block, token, count);
  switch (count) {
    case 1: multiply_pass<Policy, limited(1)>(p, block, x, token, later); break;
    case 2: multiply_pass<Policy, limited(2)>(p, block, x, token, later); break;
    case 3: multiply_pass<Policy, limited(3)>(p, block, x, token, later); break;
    case 4: multiply_pass<Policy, limited(4)>(p, block, x, token, later); break;
    case 5: multiply_pass<Policy, limited(5)>(p, block, x, token, later); break;
    default: multiply_pass<Policy, Policy::tile_tokens>(p, block, x, token, later); break;
  }
}

template <class Policy>
void multiply_one_tile(const PanelProduct& p) {
  constexpr int most = Policy::streamed_tokens;
  constexpr auto limited = [](int tokens) { return tokens < most ? tokens : most; };
  switch (p.tokens) {
    case 1: multiply_streams<Policy, limited(1)>(p); break;
    case 2: multiply_streams<Policy, limited(2)>(p); break;
    case 3: multiply_streams<Policy, limited(3)>(p); break;
    case 4: multiply_streams<Policy, limited(4)>(p); break;
    case 5: multiply_streams<Policy, limited(5)>(p); break;
    default: multiply_streams<Policy, most>(p); break;
  }
}

template <class Policy>
void multiply_fetching(const PanelProduct& p) {
  static_assert(Policy::k_block % Policy::step == 0 && Policy::step == Policy::lanes * Policy::parts * Policy::pairs);
  static_assert(Policy::tile_tokens >= 1 && Policy::tile_tokens <= Policy::streamed_tokens);
  static_assert(Policy::streamed_tokens <= 6);
  if (p.tokens <= Policy::streamed_tokens) return multiply_one_tile<Policy>(p);
  const std::int64_t passes = (p.tokens + Policy::tile_tokens - 1) / Policy::tile_tokens;
  Later later{.panel = p, .k_block = Policy::k_block, .passes = asking_passes<Policy>(passes)};
  later.start();
  for (std::int64_t begin = 0; begin < p.depth; begin += Policy::k_block) {
    const Block block = block_from<Policy>(begin, p.depth);
    std::int64_t token = 0;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      // As even as can be: a tile of one or two tokens waits for its own sums.
      const std::int64_t count = (p.tokens - token + passes - pass - 1) / (passes - pass);
      multiply_tokens<Policy>(p, block, token, count, later);
      token += count;
    }
  }
}

template <class Policy>
void multiply_panel(const PanelProduct& p) {
  if (p.spares_first_level) return multiply_fetching<FetchedToSecondLevel<Policy>>(p);
  multiply_fetching<FetchedToFirstLevel<Policy>>(p);
}

template <class Policy>
constexpr Kernel make_kernel(const char* name, DType dtype) {
  const std::int64_t scratch =
      Policy::in_place ? 0 : Policy::tile_tokens * widened_stride<Policy> * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t block_bytes = Policy::k_block * static_cast<std::int64_t>(sizeof(typename Policy::Element));
  return {name,       dtype, tile_rows_of, Policy::tile_tokens, scratch, multiply_panel<Policy>, Policy::in_place,
          block_bytes};
}

}  // namespace
}  // namespace gatefold::cpu
