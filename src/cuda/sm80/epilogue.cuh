#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/arch/copy_sm80.hpp>
#include <type_traits>

#include "cuda/common/combine.cuh"
#include "cuda/common/stored.cuh"
#include "cuda/sm80/params.cuh"
#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/tile_layouts.hpp"

namespace gatefold::cuda::sm80 {

// Turns the accumulators of a tile into its part of the output, rounded once, by way of a staging tile in shared memory
// that makes the stores to global memory whole 16-byte chunks of rows. For gemm_gated the staging tile first receives
// the gate values. Every warp keeps to its own part of it, so nothing here waits for other warps.
template <Config C>
class Epilogue {
  using Layouts = TileLayouts<C>;
  using Element = typename Layouts::Element;
  static constexpr int chunk = 16 / C.element_size();  // elements
  static constexpr int warp_rows = Layouts::warp_part;
  static constexpr int warp_columns = Layouts::warp_out;
  // A warp moves 8 rows x 4 chunks at a time (16 x 2 where its columns are no multiple of 4 chunks): lanes 0-7, which
  // access shared memory together, take one chunk each of eight rows, which swizzling has put into different banks.
  static constexpr int lane_rows = warp_columns % (4 * chunk) == 0 ? 8 : 16;
  static constexpr int lane_columns = 32 / lane_rows * chunk;
  // 192 accumulators leave no registers for the activations of many elements at a time, which ptxas would interleave.
  static constexpr bool many_accumulators = C.accumulators() > 128;
  // Combine stops at sigma = 2^-60, far inside the rounding of a sum; but gemm_gated's gate is given, and has none.
  static constexpr bool exact = C.dtype == DType::fp32 || C.op == Op::gemm_gated;
  static_assert(warp_rows % lane_rows == 0 && warp_columns % lane_columns == 0);

 public:
  static constexpr bool reads_a_tile = C.op == Op::gemm_gated;  // prefetch() requests one, which store() wants there

  __device__ Epilogue(const Params& params, Element* shared) : params_(params), shared_(shared) {}

  // Requests the gate values of a tile. They land while its main loop runs.
  __device__ void prefetch(const TileCoord& tile) {
    if constexpr (C.op == Op::gemm_gated) {
      __syncwarp();  // the other lanes have read the previous tile from here
      const auto* gate = reinterpret_cast<const Element*>(params_.gate);
      for_each_chunk(tile, 0, params_.ld_gate, params_.gate_vectors,
                     [&](Element* staged, std::int64_t offset, int count) {
                       if (count == chunk) {
                         copy_async_16(cute::cast_smem_ptr_to_uint(staged), gate + offset, 16);
                       } else {
                         for (int i = 0; i < count; ++i) staged[i] = gate[offset + i];
                       }
                     });
    }
  }

  // Everything that is handed the accumulators must be inlined, or they would go through memory.
  template <class Accumulators>
  CUTE_DEVICE void store(const TileCoord& tile, Accumulators& tCrC) {  // ((2,2),MMA_M,MMA_N)
    add_biases(tile, tCrC);
    constexpr int atoms = warp_rows / 16;
    const auto tCrParts =  // ((2,2),(MMA_M/PARTS,PARTS),MMA_N)
        cute::logical_divide(tCrC, cute::Shape<cute::Underscore, cute::Int<atoms>, cute::Underscore>{});
    CUTE_UNROLL
    for (int part = 0; part < C.store_parts(); ++part) {
      __syncwarp();  // the gate values have landed for all lanes, or all lanes have read what was staged before
      stage(tCrParts(cute::_, cute::make_coord(cute::_, part), cute::_));
      __syncwarp();
      write(tile, part);
    }
  }

 private:
  // To the sums, in fp32, before anything is made of them. A warp's products are neighbours (TileLayouts): those of 8
  // columns have number n, of which a lane has two.
  template <class Accumulators>
  CUTE_DEVICE void add_biases(const TileCoord& tile, Accumulators& tCrC) const {
    if (!params_.gate_bias.is_there() && !params_.up_bias.is_there()) return;
    ptx::wait_for_previous_grid();  // which may have written them; another thread may have waited for it, not this one
    const int thread = thread_here();
    const int first_column = tile.column + thread / 32 / C.warps_m * columns_of_warp(tile);
    CUTE_UNROLL
    for (int n = 0; n < cute::size<2>(tCrC); ++n) {
      CUTE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const TileRow row = tile_row<C.gating>(8 * n + thread % 4 * 2 + i);
        const TileBias& bias = row.half == Half::gate ? params_.gate_bias : params_.up_bias;
        if (!bias.is_there()) continue;
        const float value = bias.at<Stored<Element>>(static_cast<std::uint32_t>(first_column + row.line));
        CUTE_UNROLL
        for (int m = 0; m < cute::size<1>(tCrC); ++m) {
          tCrC(cute::make_coord(i, 0), m, n) += value;
          tCrC(cute::make_coord(i, 1), m, n) += value;
        }
      }
    }
  }

  // Of the output. A narrowed tile's are the first of a whole one's.
  static __device__ int columns_of_warp(const TileCoord& tile) {
    return C.narrows() ? warp_columns / 3 * tile.thirds : warp_columns;
  }

  __device__ void write(const TileCoord& tile, int part) {
    auto* out = reinterpret_cast<Element*>(params_.out);
    for_each_chunk(tile, part, params_.ld_out, params_.out_vectors,
                   [&](Element* staged, std::int64_t offset, int count) {
                     if (count == chunk) {
                       *reinterpret_cast<uint4*>(out + offset) = *reinterpret_cast<const uint4*>(staged);
                     } else {
                       for (int i = 0; i < count; ++i) out[offset + i] = staged[i];
                     }
                   });
  }

  // function(place in the staging tile, offset in the tensor, elements) for this lane's chunks of a part of the tile
  // that lie inside the tensor. With `vectors`, whole chunks are announced as such; otherwise, and at the last column,
  // they are cut: then a whole chunk comes as two parts.
  template <class Function>
  __device__ void for_each_chunk(const TileCoord& tile, int part, std::int64_t ld, bool vectors, Function function) {
    const auto sOut =
        cute::make_tensor(cute::make_smem_ptr(shared_), typename Layouts::SmemOut{});  // (TILE_M/PARTS,OUT_N)
    const int thread = thread_here();
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int warp_m = warp % C.warps_m;
    const int staged_row = warp_m * warp_rows + lane % lane_rows;
    const int staged_column = warp / C.warps_m * warp_columns + lane / lane_rows * chunk;
    const int row_of_warp = part * warp_rows + lane % lane_rows;
    const std::int64_t first_row = std::int64_t{tile.m} * C.tile_m + warp_m * Layouts::warp_m + row_of_warp;
    const int columns = columns_of_warp(tile);
    const int first_column = tile.column + warp / C.warps_m * columns + lane / lane_rows * chunk;
#pragma unroll
    for (int r = 0; r < warp_rows; r += lane_rows) {
      const std::int64_t row = first_row + r;
      if (row >= params_.tokens) break;
#pragma unroll
      for (int c = 0; c < warp_columns; c += lane_columns) {
        if (c >= columns) break;
        const int column = first_column + c;
        const int left = params_.intermediate_size - column;
        Element* staged = &sOut(staged_row + r, staged_column + c);
        const std::int64_t offset = row * ld + column;
        if (vectors && left >= chunk) {
          function(staged, offset, chunk);
        } else {
          function(staged, offset, left < chunk - 1 ? left : chunk - 1);
          if (left >= chunk) function(staged + chunk - 1, offset + chunk - 1, 1);
        }
      }
    }
  }

  template <class Accumulators>
  CUTE_DEVICE void stage(const Accumulators& tCrC) {
    if constexpr (C.op == Op::gemm) {
      cute::Tensor tCsC = partition_out();  // ((2,2),MMA_M,MMA_N)
      CUTE_UNROLL
      for (int i = 0; i < cute::size(tCsC); i += 2) store_pair(&tCsC(i), tCrC(i), tCrC(i + 1));
    } else {
      const auto gate_with = [&](auto gate) { stage_gated(tCrC, gate); };
      if constexpr (exact) {
        params_.exact.dispatch(gate_with);
      } else {
        // Under even_odd a thread's two outputs are of two tokens, and a token's bits are its own.
        params_.combine.template dispatch<C.gating == Gating::even_odd ? Reciprocals::own : Reciprocals::shared>(
            gate_with);
      }
    }
  }

  // gate(gate, up, gate, up) for every two elements of the output's fragment.
  template <class Accumulators, class Gate>
  CUTE_DEVICE void stage_gated(const Accumulators& tCrC, Gate gate) {
    using namespace cute;
    Tensor tCsH = partition_out();  // (2,MMA_M,MMA_N) for even_odd, else ((2,2),MMA_M,MMA_N)
    if constexpr (C.op == Op::gemm_gated) {
      CUTE_UNROLL
      for (int i = 0; i < size(tCsH); i += 2) {
        const float2 values = load_pair(&tCsH(i));
        const Pair h = gate(values.x, tCrC(i), values.y, tCrC(i + 1));
        store_pair(&tCsH(i), h.low, h.high);
      }
    } else {
      const auto tCrGate = half_of<C.gating>(tCrC, Half::gate);  // shaped like tCsH
      const auto tCrUp = half_of<C.gating>(tCrC, Half::up);
      CUTE_UNROLL
      for (int i = 0; i < size(tCsH); i += 2) {
        if constexpr (many_accumulators) {
          if (i % 4 == 0) keep_order(params_.division.tiles_m, -1 - i);  // there is no negative number of tiles
        }
        const Pair h = gate(tCrGate(i), tCrUp(i), tCrGate(i + 1), tCrUp(i + 1));
        if constexpr (C.gating == Gating::even_odd) {  // two rows
          store_one(&tCsH(i), h.low);
          store_one(&tCsH(i + 1), h.high);
        } else {  // neighbours in a row
          store_pair(&tCsH(i), h.low, h.high);
        }
      }
    }
  }

  CUTE_DEVICE auto partition_out() const {
    const auto sOut =
        cute::make_tensor(cute::make_smem_ptr(shared_), typename Layouts::SmemOut{});  // (TILE_M/PARTS,OUT_N)
    return typename Layouts::TiledOut{}.get_slice(thread_here()).partition_C(sOut);
  }

  const Params& params_;
  Element* shared_;
};

}  // namespace gatefold::cuda::sm80
