#pragma once

#include <cstdint>
#include <limits>

#include "cuda/sm80/gating.hpp"
#include "cuda/sm80/params.cuh"
#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/tile_layouts.hpp"

namespace gatefold::cuda::sm80 {

// Copies the k-tiles of a block's output tiles to shared memory, one after the other and across tile boundaries, so
// that the next tile's first operands arrive while this tile's last products and its epilogue are under way.
//
// Where the rows of a tile begin is worked out once a tile, and a thread keeps the addresses of its own rows in
// registers: that is how any order of the weight rows costs nothing. A thread copies two 16-byte chunks, 64 bytes
// apart, of every rows_per_pass-th row; two chunks for one address. What lies past hidden_size is not read, its place
// filled with zeros: a part of a chunk, whole chunks, and all of them once there is no tile left. Rows past the last
// token or the last weight row are others, whose products are never stored: to leave them out would take registers that
// fp32 lacks. In place of tokens these are the tile's weight rows, which the block requests anyway. Were it the last
// token, all blocks would ask one slice of L2 for it: Llama 8B took 189 us for 64 tokens and 111 for 128.
template <Config C, class Scheduler>
class TileLoader {
  using Layouts = TileLayouts<C>;
  static constexpr int size = C.element_size();
  static constexpr int chunk = 16 / size;  // elements
  static constexpr int far_chunk = 64;     // bytes from the first of the two chunks to the second
  static constexpr int rows_per_pass = C.threads() / 4;
  static constexpr int passes_a = C.tile_m / rows_per_pass;
  static constexpr int passes_b = C.tile_n / rows_per_pass;
  static_assert(passes_a * rows_per_pass == C.tile_m && passes_b * rows_per_pass == C.tile_n);
  static_assert(C.tile_m <= C.tile_n, "there is a weight row for each missing token");

 public:
  static constexpr int copies = 2 * (passes_a + passes_b);  // of one thread for one k-tile

  // shared: the stages, each a tile of x and a tile of the weights.
  __device__ TileLoader(const Params& params, std::uint32_t shared) : params_(params), scheduler_(params) {
    const LoaderLane lane(static_cast<int>(threadIdx.x));
    shared_ = shared + typename Layouts::SmemA{}(lane.row, lane.chunk * chunk) * size;
    start_tile();
  }

  // The k-tiles of the current output tile that have not been requested yet.
  __device__ int left() const { return left_; }

  // Copy number `i` of the current k-tile, to the stage that begins at `offset`.
  __device__ __forceinline__ void copy(int i, std::uint32_t offset) const {
    const int pass = i / 2;
    const int far = i % 2;
    const std::uint32_t near_chunk = shared_ + offset;
    const std::uint32_t to = (far == 0 ? near_chunk : near_chunk ^ far_chunk) + pass * rows_per_pass * row_bytes;
    const int bytes = min(max(params_.sum_bytes - k_ - far * far_chunk, 0), 16);
    copy_async_16(to, rows_[pass] + k_ + far * far_chunk, bytes);
  }

  __device__ __forceinline__ void advance() {
    k_ += row_bytes;
    --left_;
  }

  // To be called when nothing is left of the current tile.
  __device__ void next_tile() {
    scheduler_.advance();
    start_tile();
  }

 private:
  __device__ void start_tile() {
    if (!scheduler_.valid()) {  // k_ stays past the end of the sum
      left_ = std::numeric_limits<int>::max();
      return;
    }
    const LoaderLane lane(thread_here());
    const TileCoord tile = scheduler_.coord();
#pragma unroll
    for (int i = 0; i < passes_a; ++i) rows_[i] = token_row(tile, lane.row + i * rows_per_pass);
#pragma unroll
    for (int i = 0; i < passes_b; ++i) rows_[passes_a + i] = weight_row(tile, lane.row + i * rows_per_pass);
    k_ = lane.chunk * 16;
    left_ = params_.k_tiles;
  }

  __device__ const std::byte* token_row(const TileCoord& tile, int i) const {
    const std::int64_t row = std::int64_t{tile.m} * C.tile_m + i;
    return row < params_.tokens ? params_.x + row * params_.x_row_bytes : weight_row(tile, i);
  }

  __device__ const std::byte* weight_row(const TileCoord& tile, int n) const {
    const TileRow from = tile_row<C.gating>(n);
    const WeightRows& rows = from.half == Half::gate ? params_.gate_rows : params_.up_rows;
    const int line = min(tile.column + from.line, params_.intermediate_size - 1);
    return rows.base + rows.row(static_cast<std::uint32_t>(line)) * rows.row_bytes;
  }

  const Params& params_;
  Scheduler scheduler_;
  const std::byte* rows_[passes_a + passes_b];
  int k_ = 0;  // where this thread's first chunk begins in its rows, in bytes
  int left_ = 0;
  std::uint32_t shared_;  // this thread's first chunk of stage 0
};

}  // namespace gatefold::cuda::sm80
