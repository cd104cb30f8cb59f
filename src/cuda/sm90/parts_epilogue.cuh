#pragma once

#include <cute/tensor.hpp>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/sm90/epilogue.cuh"

namespace gatefold::cuda::sm90 {

// A part of gemm's sums goes to the workspace as it is, in fp32 (parts.cuh adds the parts up). Straight from registers:
// of a row four lanes hold eight neighbouring columns, 32 bytes, a whole sector of L2.
template <Config config>
struct PartsEpilogue : NoInputs {
  static constexpr int store_rows = 0;
  static_assert(!config.swap_ab);

  struct Arguments {
    float* sums;  // [parts, tokens, columns]
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

  // tCrC ((2, 2, tile_n / 8), slabs, 1): per 8 columns, two of row r and two of row r + 8.
  template <class Accumulator>
  static __device__ void store(const CUtensorMap& /*out*/, const Arguments& arguments, const Tile& tile, int tile_slabs,
                               Storage& /*storage*/, Inputs& /*inputs*/, int thread, const Accumulator& tCrC) {
    const int warpgroup = config.pingpong() ? 0 : thread / 128;
    const int r = thread % 128 / 32 * 16 + thread % 32 / 4;
    const int first_column = tile.n * config.columns() + thread % 4 * 2;
    const auto first_token = std::int64_t{tile.part} * arguments.tokens + tile.first_row;
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      if (slab >= tile_slabs) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = (slab * config.warpgroups_per_tile() + warpgroup) * 64 + r + 8 * half;
        if (row >= tile.tokens) continue;
        float* sums = arguments.sums + (first_token + row) * arguments.columns;
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

}  // namespace gatefold::cuda::sm90
