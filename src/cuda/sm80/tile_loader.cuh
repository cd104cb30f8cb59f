#pragma once

#include <cstdint>

#include "cuda/sm80/gating.hpp"
#include "cuda/sm80/params.cuh"
#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/tile_layouts.hpp"
#include "cuda/sm80/tile_scheduler.cuh"

namespace gatefold::sm80 {

// Copies the k-tiles of a block's output tiles to shared memory, one after the other and across tile boundaries, so
// that the next tile's first operands arrive while this tile's last products and its epilogue are under way.
//
// Where a tile's rows begin is worked out once a tile, one row a thread, and kept in a table in shared memory: that is
// how any order of the weight rows costs nothing. A thread copies the same 16-byte chunk of every rows_per_pass-th row.
// Rows past the last token or the last weight row read the last one instead: their products are never stored. Chunks
// past hidden_size read nothing and fill in zeros.
template <Config C>
class TileLoader {
  using Layouts = TileLayouts<C>;
  static constexpr int size = C.element_size();
  static constexpr int chunk = 16 / size;  // elements
  static constexpr int chunks_per_row = C.tile_k / chunk;
  static constexpr int rows_per_pass = C.threads() / chunks_per_row;
  static constexpr int passes_a = C.tile_m / rows_per_pass;
  static constexpr int passes_b = C.tile_n / rows_per_pass;
  static constexpr int pass_bytes = rows_per_pass * C.tile_k * size;
  static constexpr int stage_a_bytes = C.tile_m * C.tile_k * size;
  static constexpr int stage_b_bytes = C.tile_n * C.tile_k * size;
  static_assert(passes_a * rows_per_pass == C.tile_m && passes_b * rows_per_pass == C.tile_n);
  static_assert(rows_per_pass % 8 == 0);  // swizzling then puts all chunks of a thread at the same place of their rows

 public:
  // rows: the table, C.tile_m rows of x, then C.tile_n rows of the weights. shared: the tiles of x, then those of the
  // weights.
  __device__ TileLoader(const Params& params, const std::byte** rows, std::uint32_t shared)
      : params_(params), scheduler_(params), rows_(rows) {
    shared_ = shared + typename Layouts::SmemA{}(row(), column(), 0) * size;
    if (scheduler_.valid()) start_tile();
  }

  // Requests a share of the current k-tile.
  template <int Part, int Parts>
  __device__ void load(int stage) const {
    if (!scheduler_.valid()) return;
    const int bytes = k_ < params_.hidden_size ? 16 : 0;
    const std::int64_t offset = std::int64_t{k_} * size;
    const std::uint32_t shared_a = shared_ + stage * stage_a_bytes;
    const std::uint32_t shared_b = shared_ + C.stages * stage_a_bytes + stage * stage_b_bytes;
#pragma unroll
    for (int i = Part * passes_a / Parts; i < (Part + 1) * passes_a / Parts; ++i) {
      copy_async_16(shared_a + i * pass_bytes, rows_[row() + i * rows_per_pass] + offset, bytes);
    }
#pragma unroll
    for (int i = Part * passes_b / Parts; i < (Part + 1) * passes_b / Parts; ++i) {
      copy_async_16(shared_b + i * pass_bytes, rows_[C.tile_m + row() + i * rows_per_pass] + offset, bytes);
    }
  }

  __device__ void advance() {
    k_ += C.tile_k;
    if (k_ - column() < params_.hidden_size || !scheduler_.valid()) return;
    scheduler_.advance();
    if (scheduler_.valid()) start_tile();
  }

 private:
  __device__ static int row() { return static_cast<int>(threadIdx.x) / chunks_per_row; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % chunks_per_row * chunk; }

  __device__ void start_tile() {
    k_ = column();
    const TileCoord tile = scheduler_.coord();
    __syncthreads();  // all copies of the last tile have read the table
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < C.tile_m + C.tile_n; i += C.threads()) {
      rows_[i] = i < C.tile_m ? token_row(tile, i) : weight_row(tile, i - C.tile_m);
    }
    __syncthreads();
  }

  __device__ const std::byte* token_row(const TileCoord& tile, int i) const {
    const std::int64_t row = std::int64_t{tile.m} * C.tile_m + i;
    return params_.x + (row < params_.tokens ? row : params_.tokens - 1) * params_.x_row_bytes;
  }

  __device__ const std::byte* weight_row(const TileCoord& tile, int n) const {
    const TileRow from = tile_row<C.gating>(n);
    const WeightRows& rows = from.half == Half::gate ? params_.gate_rows : params_.up_rows;
    const int line = min(tile.n * C.out_columns() + from.line, params_.intermediate_size - 1);
    return rows.base + rows.row(static_cast<std::uint32_t>(line)) * rows.row_bytes;
  }

  const Params& params_;
  TileScheduler scheduler_;
  const std::byte** rows_;
  int k_ = 0;             // the column of this thread's chunk
  std::uint32_t shared_;  // this thread's first chunk of stage 0
};

}  // namespace gatefold::sm80
