#pragma once

#include <cute/tensor.hpp>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/sm90/epilogue.cuh"

namespace gatefold::cuda::sm90 {

// A part of the sums goes to the workspace as it is, in fp32, straight from registers; parts.cuh and gated_parts.cuh
// add the parts up. Of two weights gate's sums lie before up's.
template <Config config>
struct PartsArguments : NoInputs {
  static constexpr int halves = of_two_weights(config.product) ? 2 : 1;
  static constexpr int store_rows = 0;

  struct Arguments {
    float* sums;  // [parts, halves, tokens, columns]
    std::int32_t tokens;
    std::int32_t columns;  // a multiple of 8
  };
  struct Storage {};

  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands) {
    arguments = {reinterpret_cast<float*>(operands.workspace), static_cast<std::int32_t>(operands.tokens),
                 static_cast<std::int32_t>(problem.intermediate_size)};
    return {};
  }

  // Once, to the sum of all parts.
  template <class Accumulator>
  static __device__ void add_biases(const Arguments& /*arguments*/, const Tile& /*tile*/, int /*thread*/,
                                    Accumulator& /*tCrC*/) {}

  // Where the tile's first token has its sums of one half.
  static __device__ float* sums_of(const Arguments& arguments, const Tile& tile, int half = 0) {
    const std::int64_t row = (std::int64_t{tile.part} * halves + half) * arguments.tokens + tile.first_row;
    return arguments.sums + row * arguments.columns;
  }
};

// Of a row four lanes hold eight neighbouring columns, 32 bytes, a whole sector of L2.
template <Config config>
struct PartsEpilogue : PartsArguments<config> {
  static_assert(!config.swap_ab && !of_two_weights(config.product));
  using typename PartsArguments<config>::Arguments;
  using typename PartsArguments<config>::Storage;

  // tCrC ((2, 2, tile_n / 8), slabs, 1): per 8 columns, two of row r and two of row r + 8.
  template <class Accumulator>
  static __device__ void store(const CUtensorMap& /*out*/, const Arguments& arguments, const Tile& tile, int tile_slabs,
                               Storage& /*storage*/, NoInputs::Inputs& /*inputs*/, int thread,
                               const Accumulator& tCrC) {
    const int warpgroup = config.pingpong() ? 0 : thread / 128;
    const int r = thread % 128 / 32 * 16 + thread % 32 / 4;
    const int first_column = tile.n * config.columns() + thread % 4 * 2;
    float* const first = PartsEpilogue::sums_of(arguments, tile);
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      if (slab >= tile_slabs) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = (slab * config.warpgroups_per_tile() + warpgroup) * 64 + r + 8 * half;
        if (row >= tile.tokens) continue;
        float* sums = first + std::int64_t{row} * arguments.columns;
#pragma unroll
        for (int group = 0; group < config.tile_n / 8; ++group) {
          const int column = first_column + 8 * group;
          if (column >= arguments.columns) break;
          *reinterpret_cast<float2*>(sums + column) = {tCrC(cute::make_coord(0, half, group), slab, 0),
                                                       tCrC(cute::make_coord(1, half, group), slab, 0)};
        }
      }
    }
  }
};

// With weight rows for rows (swap-AB) eight lanes hold neighbouring columns of a token, again a whole sector. The
// warpgroups divide the tile's columns or its tokens (Config::tokens_divided); of two weights one has gate's rows and
// the other up's.
template <Config config>
struct SwapAbPartsEpilogue : PartsArguments<config> {
  static constexpr bool gated = of_two_weights(config.product);
  static_assert(config.swap_ab && !config.pingpong());
  static_assert(!gated || (config.warpgroups == 2 && config.slabs() == 1 && !config.tokens_divided));
  using typename PartsArguments<config>::Arguments;
  using typename PartsArguments<config>::Storage;

  // tCrC ((2, 2, warpgroup_tokens / 8), slabs, 1): per 8 tokens, two of column r and two of column r + 8.
  template <class Accumulator>
  static __device__ void store(const CUtensorMap& /*out*/, const Arguments& arguments, const Tile& tile,
                               int /*tile_slabs*/, Storage& /*storage*/, NoInputs::Inputs& /*inputs*/, int thread,
                               const Accumulator& tCrC) {
    const int warpgroup = thread / 128;
    const int r = thread % 128 / 32 * 16 + thread % 32 / 4;
    const int first_column = tile.n * config.columns() + (config.tokens_divided || gated ? 0 : warpgroup * 64) + r;
    const int first_token = (config.tokens_divided ? warpgroup * config.warpgroup_tokens() : 0) + thread % 4 * 2;
    float* const sums = SwapAbPartsEpilogue::sums_of(arguments, tile, gated ? warpgroup : 0) + first_column;
#pragma unroll
    for (int group = 0; group < config.warpgroup_tokens() / 8; ++group) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = first_token + 8 * group + i;
        if (token >= tile.tokens) return;
        float* const of_token = sums + std::int64_t{token} * arguments.columns;
#pragma unroll
        for (int eight = 0; eight < 2 * config.slabs(); ++eight) {
          const int column = eight / 2 * 64 + eight % 2 * 8;
          if (first_column + column < arguments.columns) {
            of_token[column] = tCrC(cute::make_coord(i, eight % 2, group), eight / 2, 0);
          }
        }
      }
    }
  }
};

}  // namespace gatefold::cuda::sm90
