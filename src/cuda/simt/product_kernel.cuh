#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layout.hpp"
#include "cuda/common/element.cuh"

// The products as any textbook has them: 64 x 64 tiles through shared memory, one fp32 multiply-add at a time. No
// assumption about shapes, strides or alignment, and none about speed.
namespace gatefold::cuda {

// Rows of a matrix that need not lie one after the other: row j begins at base + lines(j) * stride bytes.
struct RowView {
  const std::byte* base = nullptr;
  LineMap lines;
  std::int64_t stride = 0;

  __device__ __forceinline__ const std::byte* row(std::int64_t j) const { return base + lines(j) * stride; }
};

// Element j is element lines(j) of base, which is null where there is no bias.
struct BiasParams {
  const std::byte* base = nullptr;
  LineMap lines;

  template <class Element>
  __device__ __forceinline__ float add_to(float sum, std::int64_t j) const {
    return base == nullptr ? sum : sum + to_float(reinterpret_cast<const Element*>(base)[lines(j)]);
  }
};

struct ProductParams {
  RowView x;                      // [tokens, depth]
  RowView gate;                   // gate_up: weights [columns, depth]; gemm_gated: values [tokens, columns]
  RowView up;                     // weights [columns, depth]
  RowView out;                    // [tokens, columns]
  BiasParams gate_bias, up_bias;  // [columns]
  const float* row_scale;         // [tokens], or null
  std::int64_t tokens, columns, depth;
  std::int64_t column_tiles;
};

enum class Product : std::uint8_t { gemm, gemm_gated, gate_up };

struct SimtTile {
  static constexpr int threads = 256;
  static constexpr int size = 64;   // rows and columns of a tile
  static constexpr int depth = 16;  // of one step
  static constexpr int side = 4;    // a thread's outputs: side x side, 16 apart
  static constexpr int lanes = size / side;
};

// One step of one operand, transposed to [depth][row] so that neighbouring threads read neighbouring words; the extra
// column spreads the transposing stores over the banks.
using SimtPanel = float[SimtTile::depth][SimtTile::size + 1];

// Thread t loads column t % 16 of rows t / 16, t / 16 + 16, ...: always the same rows, so their addresses are kept.
template <class Element>
class PanelLoader {
 public:
  __device__ PanelLoader(const RowView& view, std::int64_t first, std::int64_t rows) {
#pragma unroll
    for (int i = 0; i < SimtTile::side; ++i) {
      const std::int64_t row = first + threadIdx.x / SimtTile::depth + i * SimtTile::lanes;
      rows_[i] = row < rows ? reinterpret_cast<const Element*>(view.row(row)) : nullptr;
    }
  }

  __device__ void load(SimtPanel& panel, std::int64_t k0, std::int64_t depth) const {
    const int k = threadIdx.x % SimtTile::depth;
#pragma unroll
    for (int i = 0; i < SimtTile::side; ++i) {
      const bool inside = rows_[i] != nullptr && k0 + k < depth;
      panel[k][threadIdx.x / SimtTile::depth + i * SimtTile::lanes] = inside ? to_float(rows_[i][k0 + k]) : 0.0F;
    }
  }

 private:
  const Element* rows_[SimtTile::side];
};

using SimtSums = float[SimtTile::side][SimtTile::side];

__device__ __forceinline__ void multiply_add(const SimtPanel& a, const SimtPanel& b, SimtSums& sums) {
  const int row = threadIdx.x / SimtTile::lanes;
  const int column = threadIdx.x % SimtTile::lanes;
#pragma unroll 2
  for (int k = 0; k < SimtTile::depth; ++k) {
#pragma unroll
    for (int i = 0; i < SimtTile::side; ++i) {
#pragma unroll
      for (int j = 0; j < SimtTile::side; ++j) {
        sums[i][j] = fmaf(a[k][row + i * SimtTile::lanes], b[k][column + j * SimtTile::lanes], sums[i][j]);
      }
    }
  }
}

template <class Element, Product product, class Activation>
__global__ void __launch_bounds__(SimtTile::threads)
    product_kernel(const __grid_constant__ ProductParams p, const Activation activation) {
  __shared__ SimtPanel x_panel;
  __shared__ SimtPanel up_panel;
  __shared__ SimtPanel gate_panel;  // gate_up only

  const std::int64_t row0 = blockIdx.x / p.column_tiles * SimtTile::size;
  const std::int64_t column0 = blockIdx.x % p.column_tiles * SimtTile::size;
  const PanelLoader<Element> x(p.x, row0, p.tokens);
  const PanelLoader<Element> up(p.up, column0, p.columns);
  const PanelLoader<Element> gate(p.gate, column0, product == Product::gate_up ? p.columns : 0);

  SimtSums up_sums{};
  SimtSums gate_sums{};
  for (std::int64_t k0 = 0; k0 < p.depth; k0 += SimtTile::depth) {
    x.load(x_panel, k0, p.depth);
    up.load(up_panel, k0, p.depth);
    if constexpr (product == Product::gate_up) gate.load(gate_panel, k0, p.depth);
    __syncthreads();
    multiply_add(x_panel, up_panel, up_sums);
    if constexpr (product == Product::gate_up) multiply_add(x_panel, gate_panel, gate_sums);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < SimtTile::side; ++i) {
#pragma unroll
    for (int j = 0; j < SimtTile::side; ++j) {
      const std::int64_t row = row0 + threadIdx.x / SimtTile::lanes + i * SimtTile::lanes;
      const std::int64_t column = column0 + threadIdx.x % SimtTile::lanes + j * SimtTile::lanes;
      if (row >= p.tokens || column >= p.columns) continue;
      const float scale = p.row_scale == nullptr ? 1.0F : p.row_scale[row];
      float h = p.up_bias.add_to<Element>(up_sums[i][j] * scale, column);
      if constexpr (product == Product::gate_up) {
        h = activation(p.gate_bias.add_to<Element>(gate_sums[i][j] * scale, column), h);
      }
      if constexpr (product == Product::gemm_gated) {
        h = activation(to_float(reinterpret_cast<const Element*>(p.gate.row(row))[column]), h);
      }
      reinterpret_cast<Element*>(const_cast<std::byte*>(p.out.row(row)))[column] = from_float<Element>(h);
    }
  }
}

}  // namespace gatefold::cuda
