#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/loops/kernel.hpp"

// A tile: 4 rows of weights by up to a policy's tokens, over one block of the sums' terms.
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
//                             its tokens fit one tile, again for every 4 rows
//   widened_tokens            where x isn't read in place: of a tile of weights that are in fp32 as well (widened.hpp)
//   widened_cache             then: bytes of a second-level cache in which such weights are the faster ones
//   parts                     vectors that a step's elements are spread over, where 16 bits become 32
//   parts_share_words         whether two parts are made of the same words
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

// The operands of one part of a tile's step from element k on; `count` is the step's elements, where it is a rest.
template <class Policy, bool rest, class X>
struct StepOperands {
  const TileRows<Policy>& rows;
  const TileTokens<X>& x;
  std::int64_t k;
  int part;
  int count;

  GATEFOLD_LOOP typename Policy::Operand weights(int r) const {
    const auto* at = rows.row[r] + k;
    return rest ? Policy::load_rest(at, part, count) : Policy::load(at, part);
  }
  GATEFOLD_LOOP typename Policy::Operand factor(int t) const {
    const auto* at = x.first + t * x.stride + k;
    return rest ? load_x_rest<Policy>(at, part, count) : load_x<Policy>(at, part);
  }
};

// One part of a step. Registers hold all operands of the shorter side and one of the longer: of 4 rows x 6 tokens five
// in place of seven, so that with 24 sums and the mask of bf16 32 are enough.
template <class Policy, int tokens, bool rest, class X>
GATEFOLD_LOOP void multiply_part(const StepOperands<Policy, rest, X>& of,
                                 typename Policy::Vector (&sums)[tokens][tile_rows_of]) {
  if constexpr (tokens > tile_rows_of) {
    typename Policy::Operand weights[tile_rows_of];
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) weights[r] = of.weights(r);
#pragma GCC unroll 8
    for (int t = 0; t < tokens; ++t) {
      const typename Policy::Operand factor = of.factor(t);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows_of; ++r) sums[t][r] = Policy::multiply_add(weights[r], factor, sums[t][r]);
    }
  } else {
    typename Policy::Operand factors[tokens];
#pragma GCC unroll 8
    for (int t = 0; t < tokens; ++t) factors[t] = of.factor(t);
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows_of; ++r) {
      const typename Policy::Operand weights = of.weights(r);
#pragma GCC unroll 8
      for (int t = 0; t < tokens; ++t) sums[t][r] = Policy::multiply_add(weights, factors[t], sums[t][r]);
    }
  }
}

// One step of a tile. `count` is the step's elements, or 0 for all of them.
template <class Policy, int tokens, bool rest, class X>
GATEFOLD_LOOP void multiply_step(const TileRows<Policy>& rows, const TileTokens<X>& x, std::int64_t k, int count,
                                 typename Policy::Vector (&sums)[tokens][tile_rows_of]) {
#pragma GCC unroll 4
  for (int part = 0; part < Policy::parts; ++part) {
    // Where sums take most registers the words are loaded again for the next part, not kept.
    if (part > 0 && Policy::parts_share_words && tokens > tile_rows_of) asm volatile("" ::: "memory");
    multiply_part<Policy, tokens>(StepOperands<Policy, rest, X>{rows, x, k, part, count}, sums);
  }
}

// Bytes of rows as they are stored, which are asked for ahead of their use.
struct AheadRows {
  const std::byte* row[tile_rows_of];
};

// Whole steps from k on that end before `end`; where they end. The first `fetched` of the rows ahead are asked for on
// the way: all of them are those of streams.
template <class Policy, int tokens, int fetched, class X>
GATEFOLD_LOOP std::int64_t multiply_steps(const TileRows<Policy>& rows, const AheadRows& ahead, const TileTokens<X>& x,
                                          std::int64_t k, std::int64_t end,
                                          typename Policy::Vector (&sums)[tokens][tile_rows_of]) {
  constexpr int locality = fetched == tile_rows_of ? Policy::fetch_locality : Policy::later_locality;
  for (; k + Policy::step <= end; k += Policy::step) {
#pragma GCC unroll 4
    for (int r = 0; r < fetched; ++r) __builtin_prefetch(ahead.row[r] + k * Policy::stored_bytes, 0, locality);
    multiply_step<Policy, tokens, false>(rows, x, k, 0, sums);
  }
  return k;
}

// Rows that are asked for during a tile: the first ones until element `turn`, then the others.
struct TileAhead {
  AheadRows first;
  AheadRows then;
  std::int64_t turn;
};

// sums[t][r] (+)= x[t] . rows[r] over `count` elements.
template <class Policy, int tokens, int fetched, class X>
GATEFOLD_LOOP void multiply_tile(const TileRows<Policy>& rows, const TileAhead& ahead, const TileTokens<X>& x,
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

// Elements of every row that are multiplied with all tokens before the next ones: the same for any number of tokens.
struct Block {
  std::int64_t begin;
  std::int64_t count;
};

template <class Policy>
GATEFOLD_LOOP Block block_from(std::int64_t begin, std::int64_t depth) {
  return {begin, depth - begin < Policy::k_block ? depth - begin : Policy::k_block};
}

}  // namespace
}  // namespace gatefold::cpu
