#pragma once

#include <cstdint>
#include <limits>

#include "cuda/copy_engine/copies.cuh"
#include "cuda/sm80/on_sm90/box_params.cuh"
#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/tile_layouts.hpp"

namespace gatefold::cuda::sm80 {

// Requests the k-tiles of a block's output tiles of the copy engine, four boxes each. The first four warps request one
// each, so that each of the multiprocessor's schedulers has one warp that does and one that doesn't: requested by three
// of them, 3 % fewer products came out of a cycle.
//
//     warp 0, 1   two quarters of the tile's tokens, for both blocks of the cluster; the other block brings the others
//     warp 2, 3   gate's weight rows and up's, or of a single weight the first tile_n / 2 and the others
//
//     tokens              | block 0: warp 0, warp 1 | block 1: warp 0, warp 1 |
//     weights             | warp 2                  | warp 3                  |
//     of a narrow tile    | warp 2 |                | warp 3 |                |
//
// What a box has past the last token, weight row or column the copy engine fills with zeros. A box that lies past them
// as a whole, which would take longer than another, is left out: its products are never stored.
template <Config C, class Scheduler>
class BoxLoader {
  static constexpr int strip_rows = C.tile_n / 2;
  static constexpr int swizzle_bytes = 8 * row_bytes;
  static constexpr std::int32_t nothing = -1;

 public:
  static constexpr int warps = 4;
  static constexpr int token_rows = C.token_box_rows();
  static_assert(C.threads() >= 32 * warps);
  static_assert(token_rows * 2 * C.cluster == C.tile_m && strip_rows * 2 == C.tile_n);
  static_assert(token_rows % 8 == 0 && strip_rows % 8 == 0, "a box begins where the swizzle does");
  static_assert(strip_rows % 24 == 0, "so does one of a third");

  // What a warp brings of each k-tile of one output tile. It lies in shared memory: accumulators take the registers.
  struct Box {
    std::int32_t row;         // of x, or of the weights in its repetition of the layout's pattern; or nothing
    std::int32_t repetition;  // of that
    std::int32_t bytes;       // that arrive in this block, whichever brings them
    std::int32_t place;       // the offset in the stage, where swizzling begins anew, and below it the tensor's number

    __device__ std::uint32_t offset() const { return place & -swizzle_bytes; }
    __device__ int tensor() const { return place & (swizzle_bytes - 1); }
  };

  // boxes: where in shared memory the warps' boxes lie.
  __device__ BoxLoader(const BoxParams& params, std::uint32_t boxes)
      : params_(params), scheduler_(params), boxes_(boxes) {
    start_tile();
  }

  // The k-tiles of the current output tile that have not been requested yet.
  __device__ int left() const { return left_; }
  __device__ __forceinline__ void advance() { --left_; }

  // To be called when nothing is left of the current tile.
  __device__ void next_tile() {
    scheduler_.advance();
    start_tile();
  }

  __device__ static bool issues_loads() { return thread_here() < 32 * warps; }

  // This warp's, if it requests one.
  __device__ __forceinline__ Box box() const {
    Box box;
    load_words(box_address(), box.row, box.repetition, box.bytes, box.place);
    return box;
  }

  // By one thread of a warp that requests: the box of the next k-tile, to a stage. Once there is no tile left nothing
  // comes, but what waits for it goes on.
  __device__ __forceinline__ void bring(const Box& box, std::uint32_t stage, std::uint32_t full) const {
    barrier_expect_bytes(full, box.bytes);
    if (box.row == nothing) return;
    const int warp = thread_here() / 32;
    const int k = (params_.k_tiles - left_) * C.tile_k;
    const CUtensorMap* tensor = &params_.tensors[box.tensor()];
    if (C.cluster > 1 && of_tokens(warp)) {
      load_tile_3d_multicast(tensor, full, stage + box.offset(), k, box.row, 0, (1U << C.cluster) - 1);
    } else {
      load_tile_3d(tensor, full, stage + box.offset(), k, box.row, box.repetition);
    }
  }

 private:
  __device__ static bool of_tokens(int warp) { return warp < 2; }
  __device__ std::uint32_t box_address() const {
    return boxes_ + thread_here() / 32 * static_cast<std::uint32_t>(sizeof(Box));
  }

  __device__ void start_tile() {
    const bool valid = scheduler_.valid();
    left_ = valid ? params_.k_tiles : std::numeric_limits<int>::max();
    if (!issues_loads()) return;
    const int warp = thread_here() / 32;
    Box box{.row = nothing, .repetition = 0, .bytes = 0, .place = 0};
    if (valid) box = of_tokens(warp) ? token_box(scheduler_.coord(), warp) : weight_box(scheduler_.coord(), warp - 2);
    store_words(box_address(), box.row, box.repetition, box.bytes, box.place);
    __syncwarp();
  }

  __device__ Box token_box(const TileCoord& tile, int number) const {
    const int rank = C.cluster > 1 ? static_cast<int>(cluster_rank()) : 0;
    const int row = (rank * 2 + number) * token_rows;
    const std::int64_t left = params_.tokens - tile.m * C.tile_m;
    Box box{.row = row < left ? tile.m * C.tile_m + row : nothing,
            .repetition = 0,
            .bytes = 0,
            .place = row * row_bytes + BoxParams::of_x};
#pragma unroll
    for (int r = 0; r < C.cluster; ++r) {
      if ((r * 2 + number) * token_rows < left) box.bytes += token_rows * row_bytes;
    }
    return box;
  }

  __device__ Box weight_box(const TileCoord& tile, int strip) const {
    const int rows = strip_rows / 3 * tile.thirds;
    const int row = tile.column + (C.gated_pair() ? 0 : strip * rows);
    const int repetition = row / params_.block;
    const bool any = row < params_.intermediate_size;
    return {.row = any ? row - repetition * params_.block : nothing,
            .repetition = repetition,
            .bytes = any ? rows * row_bytes : 0,
            .place = (C.tile_m + strip * strip_rows) * row_bytes +
                     (tile.thirds == 3 ? BoxParams::of_weights : BoxParams::of_narrow_weights) + strip};
  }

  const BoxParams& params_;
  Scheduler scheduler_;
  std::uint32_t boxes_;
  int left_ = 0;
};

}  // namespace gatefold::cuda::sm80
