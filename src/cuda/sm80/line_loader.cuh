#pragma once

#include <cstdint>
#include <limits>

#include "cuda/sm80/gating.hpp"
#include "cuda/sm80/params.cuh"
#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/tile_layouts.hpp"

namespace gatefold::cuda::sm80 {

// Copies the k-tiles of a block's output tiles to shared memory, as TileLoader does, in whole lines of 128 bytes: eight
// lanes take a row, so that a warp's copy asks L2 for four lines where halves of rows would be eight requests.
//
// A thread's rows of x are rows_per_pass apart, its weight rows (all of one half) lines_per_pass lines: each operand
// takes one address and one stride in registers, and both together a bit for each row. So this loader wants
// (fits_layout) rows at even distances, below 2^31 bytes from one pass to the next, and whole chunks in every row. Rows
// past the last token or the last weight row are not read, their place filled with zeros; so are the chunks past
// hidden_size, and all of them once there is no tile left.
template <Config C, class Scheduler>
class LineLoader {
  using Layouts = TileLayouts<C>;
  static constexpr int size = C.element_size();
  static constexpr int chunk = 16 / size;  // elements
  static constexpr int rows_per_pass = C.rows_per_pass();
  static constexpr int lines_per_pass = C.lines_per_pass();
  static constexpr int passes_a = C.tile_m / rows_per_pass;
  static constexpr int passes_b = C.tile_n / rows_per_pass;
  static constexpr std::uint32_t last_chunk = 0x80000000U;  // in rows_: the last k-tile has this thread's chunk
  static_assert(passes_a * rows_per_pass == C.tile_m && passes_b * rows_per_pass == C.tile_n);
  static_assert(!C.narrows(), "all tiles are whole");
  static_assert(passes_a + passes_b < 31, "a bit for each, and last_chunk");
  static_assert(rows_per_pass % 16 == 0, "all weight rows of a thread belong to one half");

  struct Rows {
    const std::byte* next;  // this thread's chunk of its first row in the k-tile to be copied
    std::int32_t stride;    // between its rows, in bytes
  };

 public:
  static constexpr int copies = passes_a + passes_b;  // of one thread for one k-tile

  // shared: the stages, each a tile of x and a tile of the weights.
  __device__ LineLoader(const Params& params, std::uint32_t shared) : params_(params), scheduler_(params) {
    const LineLane lane(static_cast<int>(threadIdx.x));
    shared_ = shared + typename Layouts::SmemA{}(lane.row, lane.chunk * chunk) * size;
    start_tile();
  }

  // The k-tiles of the current output tile that have not been requested yet.
  __device__ int left() const { return left_; }

  // Copy number `i` of the current k-tile, to the stage that begins at `offset`.
  __device__ __forceinline__ void copy(int i, std::uint32_t offset) const {
    const bool of_x = i < passes_a;
    const Rows& rows = of_x ? x_ : weights_;
    const std::uint32_t there = left_ != 1 || (rows_ & last_chunk) != 0 ? rows_ : 0;
    copy_async_16_of_row(shared_ + offset, i * rows_per_pass * row_bytes, rows.next, rows.stride,
                         of_x ? i : i - passes_a, there, 1U << i);
  }

  __device__ __forceinline__ void advance() {
    x_.next += row_bytes;
    weights_.next += row_bytes;
    --left_;
  }

  // To be called when nothing is left of the current tile.
  __device__ void next_tile() {
    scheduler_.advance();
    start_tile();
  }

 private:
  __device__ void start_tile() {
    if (!scheduler_.valid()) {
      left_ = std::numeric_limits<int>::max();
      rows_ = 0;
      return;
    }
    const LineLane lane(thread_here());
    const TileCoord tile = scheduler_.coord();
    left_ = params_.k_tiles;
    rows_ = (left_ - 1) * row_bytes + lane.chunk * 16 < params_.sum_bytes ? last_chunk : 0;

    const std::int64_t token = std::int64_t{tile.m} * C.tile_m + lane.row;
#pragma unroll
    for (int i = 0; i < passes_a; ++i) {
      if (token + i * rows_per_pass < params_.tokens) rows_ |= 1U << i;
    }
    x_ = {params_.x + token * params_.x_row_bytes + lane.chunk * 16,
          static_cast<std::int32_t>(params_.x_row_bytes) * rows_per_pass};

    const TileRow from = tile_row<C.gating>(lane.row);
    const WeightRows& half = from.half == Half::gate ? params_.gate_rows : params_.up_rows;
    const int line = tile.column + from.line;
#pragma unroll
    for (int i = 0; i < passes_b; ++i) {
      if (line + i * lines_per_pass < params_.intermediate_size) rows_ |= 1U << (passes_a + i);
    }
    weights_ = {half.base + half.row(static_cast<std::uint32_t>(line)) * half.row_bytes + lane.chunk * 16,
                static_cast<std::int32_t>(half.stride(lines_per_pass))};
  }

  const Params& params_;
  Scheduler scheduler_;
  Rows x_, weights_;
  std::uint32_t rows_ = 0;  // bit i: copy number i is of a row that exists; and last_chunk
  int left_ = 0;
  std::uint32_t shared_;  // this thread's first chunk of stage 0
};

}  // namespace gatefold::cuda::sm80
