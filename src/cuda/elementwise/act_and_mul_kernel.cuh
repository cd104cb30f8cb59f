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

enum class Runs : std::uint8_t { powers_of_two, any };

// Passed to a kernel as a type with a constexpr member `value`: nvcc 13.0 writes host code that does not compile for
// kernels whose template arguments are structs.
struct ActAndMulConfig {
  Access access = Access::vectors;
  int log2_threads = 8;
  int log2_units = 2;  // per thread, at most
  Runs runs = Runs::powers_of_two;

  constexpr int threads() const { return 1 << log2_threads; }
  constexpr int units() const { return 1 << log2_units; }
};

// A unit of a thread, relative to its first.
struct UnitStep {
  std::int64_t gate, up, out;  // bytes
  std::int32_t rows, columns;  // units
};

// Strides and sizes count units of the kernel's access, so that one body serves them all.
struct ActAndMulParams {
  static constexpr int most_units = 8;

  const std::byte* gate;  // alternating: the first of the pair, which is up if up_first
  const std::byte* up;
  std::byte* out;
  std::int64_t gate_stride, up_stride, out_stride;  // bytes from one row to the next
  std::int64_t rows, columns;

  // Of runs that are powers of two: column c of a half begins (c >> run_shift) * run_period + (c & run_mask) units
  // after the half's first.
  std::int64_t run_mask, run_period;
  std::int32_t run_shift;

  TileShape tile;
  bool up_first;
  // Runs, lanes and tiles are powers of two, so the way from a thread's first unit to its others is everyone's. Of
  // other runs a thread has one unit.
  UnitStep steps[most_units];
  AnyRun any_run;  // of other runs

  template <Runs runs>
  __host__ __device__ std::int64_t input_column(std::int64_t c) const {
    if constexpr (runs == Runs::any) return any_run.input_column(c);
    return (c >> run_shift) * run_period + (c & run_mask);
  }
};

// What one thread reads and writes at once.
template <class Element, Access access>
struct Unit;

template <class Element>
struct Unit<Element, Access::vectors> {
  static constexpr int elements = Vector<Element>::elements;
  static constexpr int bytes = 16;        // of output
  static constexpr int input_bytes = 16;  // of a half

  uint4 gate, up;

  __device__ __forceinline__ void load(const std::byte* gate_at, const std::byte* up_at, bool inside) {
    gate = ptx::load_vector_if(inside, gate_at);
    up = ptx::load_vector_if(inside, up_at);
  }
  template <class Activation>
  __device__ __forceinline__ void store(std::byte* out, const Activation& activation, bool /*up_first*/,
                                        bool inside) const {
    auto g = Vector<Element>::unpack(gate);
    const auto u = Vector<Element>::unpack(up);
#pragma unroll
    for (int i = 0; i < elements; ++i) g.values[i] = activation(g.values[i], u.values[i]);
    ptx::store_streaming_if(inside, out, g.pack());
  }
};

template <class Element>
struct Unit<Element, Access::alternating> {
  static constexpr int elements = Vector<Element>::elements;
  static constexpr int bytes = 16;
  static constexpr int input_bytes = 32;

  uint4 low, high;

  // Both halves of a 32-byte sector: the second comes out of L1.
  __device__ __forceinline__ void load(const std::byte* pairs, const std::byte* /*up_at*/, bool inside) {
    low = ptx::load_vector_if(inside, pairs);
    high = ptx::load_vector_if(inside, pairs + bytes);
  }
  template <class Activation>
  __device__ __forceinline__ void store(std::byte* out, const Activation& activation, bool up_first,
                                        bool inside) const {
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
    ptx::store_streaming_if(inside, out, h.pack());
  }
};

template <class Element>
struct Unit<Element, Access::elements> {
  static constexpr int elements = 1;
  static constexpr int bytes = sizeof(Element);
  static constexpr int input_bytes = sizeof(Element);

  Element gate, up;

  __device__ __forceinline__ void load(const std::byte* gate_at, const std::byte* up_at, bool inside) {
    if (!inside) return;
    gate = *reinterpret_cast<const Element*>(gate_at);
    up = *reinterpret_cast<const Element*>(up_at);
  }
  template <class Activation>
  __device__ __forceinline__ void store(std::byte* out, const Activation& activation, bool /*up_first*/,
                                        bool inside) const {
    if (inside) *reinterpret_cast<Element*>(out) = from_float<Element>(activation(to_float(gate), to_float(up)));
  }
};

// One block per tile: x counts them along a row; y and z, which hold 65535 each, from row to row. All of a thread's
// loads are issued before the first is used. The output may be one of the inputs: whoever writes a unit is the one who
// read it, before. The blocks may be in place before the kernel before them has ended, for which they wait.
template <class Element, class Activation, class Config>
__global__ void __launch_bounds__(Config::value.threads())
    act_and_mul_kernel(const __grid_constant__ ActAndMulParams p, const Activation activation) {
  constexpr ActAndMulConfig config = Config::value;
  static_assert(config.runs == Runs::powers_of_two || config.units() == 1);
  using ThisUnit = Unit<Element, config.access>;
  const TileShape& tile = p.tile;
  const std::uint32_t row_tile = blockIdx.z * gridDim.y + blockIdx.y;
  const std::int64_t row = row_tile * tile.rows() + (threadIdx.x >> tile.log2_lanes);
  const std::int64_t column = blockIdx.x * tile.columns() + (threadIdx.x & ((1U << tile.log2_lanes) - 1));
  const std::int64_t input_column = p.input_column<config.runs>(column) * ThisUnit::input_bytes;
  const std::byte* gate = p.gate + row * p.gate_stride + input_column;
  const std::byte* up = p.up + row * p.up_stride + input_column;
  std::byte* out = p.out + row * p.out_stride + column * ThisUnit::bytes;
  constexpr std::int64_t most = 0x7fffffff;
  const auto rows_left = static_cast<std::int32_t>(min(p.rows - row, most));
  const auto columns_left = static_cast<std::int32_t>(min(p.columns - column, most));

  ThisUnit unit[config.units()];
  bool inside[config.units()];
  ptx::wait_for_previous_grid();
#pragma unroll
  for (int i = 0; i < config.units(); ++i) {
    inside[i] = p.steps[i].rows < rows_left && p.steps[i].columns < columns_left;
    unit[i].load(gate + p.steps[i].gate, up + p.steps[i].up, inside[i]);
  }
  // Otherwise ptxas would compute the first unit before it issues the other loads.
  __syncwarp();
  ptx::launch_next_grid();
#pragma unroll
  for (int i = 0; i < config.units(); ++i) unit[i].store(out + p.steps[i].out, activation, p.up_first, inside[i]);
}

// The same for one long row of each tensor, which tensors without padding are, in blocks of any size: 16 instructions
// before the first load instead of 66, and 133 instead of 190 in all (bf16, silu).
template <class Element, class Activation, class Config>
__global__ void __launch_bounds__(most_row_threads)
    act_and_mul_row_kernel(const std::byte* gate, const std::byte* up, std::byte* out, std::int64_t columns,
                           const Activation activation) {
  using ThisUnit = Unit<Element, Config::value.access>;
  const std::int64_t column = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  ptx::wait_for_previous_grid();
  if (column >= columns) return;
  ThisUnit unit;
  unit.load(gate + column * ThisUnit::input_bytes, up + column * ThisUnit::input_bytes, true);
  ptx::launch_next_grid();
  unit.store(out + column * ThisUnit::bytes, activation, false, true);
}

}  // namespace gatefold::cuda
