#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/common/element.cuh"
#include "cuda/common/ptx.cuh"
#include "cuda/elementwise/tile.hpp"

// out = act(gate) * up, element by element. The kernel reads each input once and writes the output once; everything in
// it serves to keep enough 16-byte loads in flight.
namespace gatefold::cuda {

enum class Access : std::uint8_t {
  vectors,      // 16 bytes of gate, 16 bytes of up
  alternating,  // 32 bytes in which gate and up alternate one by one
  elements,     // one of each, for addresses that 16-byte accesses cannot take
};

// Passed to a kernel as a type with a constexpr member `value`: nvcc 13.0 writes host code that does not compile for
// kernels whose template arguments are structs.
struct ActAndMulConfig {
  Access access = Access::vectors;
  int log2_threads = 8;
  int log2_units = 2;  // per thread, at most

  constexpr int threads() const { return 1 << log2_threads; }
  constexpr int units() const { return 1 << log2_units; }
};

// Strides and sizes count units, so that one kernel body serves every access.
struct ActAndMulParams {
  const std::byte* gate;  // alternating: the first of the pair, which is up if up_first
  const std::byte* up;
  std::byte* out;
  std::int64_t gate_stride, up_stride, out_stride;  // bytes from one row to the next
  std::int64_t rows, columns;

  // Column c of a half begins (c >> run_shift) * run_period + (c & run_mask) units after the half's first.
  std::int64_t run_mask, run_period;
  std::int32_t run_shift;

  std::uint32_t column_tiles;
  TileShape tile;
  bool up_first;

  __device__ __forceinline__ std::int64_t input_column(std::int64_t c) const {
    return (c >> run_shift) * run_period + (c & run_mask);
  }
};

// What one thread reads and writes at once.
template <class Element, Access access>
struct Unit;

template <class Element>
struct Unit<Element, Access::vectors> {
  static constexpr int elements = Vector<Element>::elements;
  static constexpr int bytes = 16;

  uint4 gate, up;

  __device__ __forceinline__ void load(const ActAndMulParams& p, std::int64_t row, std::int64_t column) {
    const std::int64_t offset = p.input_column(column) * bytes;
    gate = ptx::load_streaming(p.gate + row * p.gate_stride + offset);
    up = ptx::load_streaming(p.up + row * p.up_stride + offset);
  }
  template <class Activation>
  __device__ __forceinline__ void store(std::byte* out, const Activation& activation, bool /*up_first*/) const {
    auto g = Vector<Element>::unpack(gate);
    const auto u = Vector<Element>::unpack(up);
#pragma unroll
    for (int i = 0; i < elements; ++i) g.values[i] = activation(g.values[i], u.values[i]);
    ptx::store_vector(out, g.pack());
  }
};

template <class Element>
struct Unit<Element, Access::alternating> {
  static constexpr int elements = Vector<Element>::elements;
  static constexpr int bytes = 16;

  uint4 low, high;

  __device__ __forceinline__ void load(const ActAndMulParams& p, std::int64_t row, std::int64_t column) {
    const std::byte* pairs = p.gate + row * p.gate_stride + column * 2 * bytes;
    low = ptx::load_vector(pairs);  // both halves of a 32-byte sector: the second comes out of L1
    high = ptx::load_vector(pairs + bytes);
  }
  template <class Activation>
  __device__ __forceinline__ void store(std::byte* out, const Activation& activation, bool up_first) const {
    const auto first = Vector<Element>::unpack(low);
    const auto second = Vector<Element>::unpack(high);
    Vector<Element> h;
#pragma unroll
    for (int i = 0; i < elements; ++i) {
      const auto& source = i < elements / 2 ? first : second;
      const int at = 2 * i % elements;
      const float g = up_first ? source.values[at + 1] : source.values[at];
      const float u = up_first ? source.values[at] : source.values[at + 1];
      h.values[i] = activation(g, u);
    }
    ptx::store_vector(out, h.pack());
  }
};

template <class Element>
struct Unit<Element, Access::elements> {
  static constexpr int elements = 1;
  static constexpr int bytes = sizeof(Element);

  Element gate, up;

  __device__ __forceinline__ void load(const ActAndMulParams& p, std::int64_t row, std::int64_t column) {
    const std::int64_t offset = p.input_column(column) * bytes;
    gate = *reinterpret_cast<const Element*>(p.gate + row * p.gate_stride + offset);
    up = *reinterpret_cast<const Element*>(p.up + row * p.up_stride + offset);
  }
  template <class Activation>
  __device__ __forceinline__ void store(std::byte* out, const Activation& activation, bool /*up_first*/) const {
    *reinterpret_cast<Element*>(out) = from_float<Element>(activation(to_float(gate), to_float(up)));
  }
};

// One block per tile. All of a thread's loads are issued before the first is used. The output may be one of the inputs:
// whoever writes a unit is the one who read it, before.
template <class Element, class Activation, class Config>
__global__ void __launch_bounds__(Config::value.threads())
    act_and_mul_kernel(const __grid_constant__ ActAndMulParams p, const Activation activation) {
  constexpr ActAndMulConfig config = Config::value;
  using ThisUnit = Unit<Element, config.access>;
  const TileShape& tile = p.tile;
  const std::uint32_t row_tile = blockIdx.x / p.column_tiles;
  const std::uint32_t column_tile = blockIdx.x - row_tile * p.column_tiles;
  const int lanes = 1 << tile.log2_lanes;
  const int row_step = config.threads() >> tile.log2_lanes;
  const std::int64_t first_row = row_tile * tile.rows() + (threadIdx.x >> tile.log2_lanes);
  const std::int64_t first_column = column_tile * tile.columns() + (threadIdx.x & (lanes - 1));
  const int units = 1 << (tile.log2_column_steps + tile.log2_row_steps);

  ThisUnit unit[config.units()];
  std::byte* out[config.units()];
#pragma unroll
  for (int i = 0; i < config.units(); ++i) {
    const std::int64_t row = first_row + (i >> tile.log2_column_steps) * row_step;
    const std::int64_t column = first_column + (i & ((1 << tile.log2_column_steps) - 1)) * lanes;
    const bool inside = i < units && row < p.rows && column < p.columns;
    out[i] = inside ? p.out + row * p.out_stride + column * ThisUnit::bytes : nullptr;
    if (inside) unit[i].load(p, row, column);
  }
#pragma unroll
  for (int i = 0; i < config.units(); ++i) {
    if (out[i] != nullptr) unit[i].store(out[i], activation, p.up_first);
  }
}

}  // namespace gatefold::cuda
