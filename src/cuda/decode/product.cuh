#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layout.hpp"
#include "cuda/common/bias.cuh"
#include "cuda/common/combine.cuh"
#include "cuda/decode/config.hpp"

// What gate_up and gemm differ in: whose rows a tile's weights are, and what becomes of their sums.
namespace gatefold::cuda::decode {

// Rows of a matrix that need not lie one after the other: row j begins at base + lines(j) * stride bytes.
struct Rows {
  const std::byte* base = nullptr;
  LineMap lines;
  std::int64_t stride = 0;

  __device__ __forceinline__ const std::byte* row(std::int64_t j) const { return base + lines(j) * stride; }
};

struct Arguments {
  const std::byte* x = nullptr;  // [tokens, depth]
  std::int64_t x_stride = 0;     // bytes
  Rows gate;                     // [columns, depth]; gate_up's
  Rows up;                       // [columns, depth]; gemm's only weights
  std::byte* out = nullptr;      // [tokens, columns]
  std::int64_t out_stride = 0;   // bytes
  Bias gate_bias, up_bias;       // [columns]
  std::int64_t tokens = 0;
  std::int64_t columns = 0;
  std::int64_t first_token = 0;  // of the launch; blockIdx.y counts on from it
  int depth = 0;                 // a multiple of 8
  int tiles = 0;
  bool weights_settled = false;  // Operands::weights_settled
  ExactCombine combine;
};

// The tile of a product, whose first column of the output is `first`:
//
//   row(p, first, r)                       weight row r of the tile. Past the last column it is the last one's, and
//   nobody
//                                          stores its sums
//   output<Element>(p, column, j, total)   the tile's column j, `column` of the output; total(r) is the sum of row r
template <Product product>
struct TileOf;

template <>
struct TileOf<Product::gemm> {
  static __device__ __forceinline__ const std::byte* row(const Arguments& p, std::int64_t first, int r) {
    return p.up.row(min(first + r, p.columns - 1));
  }

  template <class Element, class Total>
  static __device__ __forceinline__ float output(const Arguments& p, std::int64_t column, int j, const Total& total) {
    return p.up_bias.add_to<Element>(total(j), column);
  }
};

// Of every sixteen rows eight are gate's and eight are up's, of the same columns.
template <>
struct TileOf<Product::gate_up> {
  static __device__ __forceinline__ const std::byte* row(const Arguments& p, std::int64_t first, int r) {
    const std::int64_t column = min(first + r / 16 * 8 + r % 8, p.columns - 1);
    return r % 16 < 8 ? p.gate.row(column) : p.up.row(column);
  }

  template <class Element, class Total>
  static __device__ __forceinline__ float output(const Arguments& p, std::int64_t column, int j, const Total& total) {
    const int gate_row = j / 8 * 16 + j % 8;
    const float gate = p.gate_bias.add_to<Element>(total(gate_row), column);
    const float up = p.up_bias.add_to<Element>(total(gate_row + 8), column);
    float h = 0.0F;
    p.combine.dispatch([&](auto act) { h = act(gate, up, 0.0F, 0.0F).low; });
    return h;
  }
};

}  // namespace gatefold::cuda::decode
