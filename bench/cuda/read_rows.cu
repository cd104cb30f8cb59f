#include "read_rows.hpp"

#include <cuda.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "copy_piece.cuh"
#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "cuda/copy_engine/copies.cuh"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

using namespace gatefold::cuda;

constexpr int line = 128;  // bytes
constexpr int most_slots = 32;
constexpr int consumer_warps = 4;
constexpr int consumers = 32 * consumer_warps;
constexpr int threads = consumers + 32;

struct Arguments {
  CUtensorMap map;  // (byte of a line, line of a row, row), or the last two the other way round; boxes of rows / 2
  const std::byte* base;
  std::int64_t row_bytes;
  std::int64_t segment_bytes;  // of a row, which a tile's blocks divide
  std::int64_t segments;       // of all tiles
  std::int64_t to_second;      // rows from a tile's first half to its second
  std::int64_t tile_step;      // rows from a tile to the next
  Request request;
  int rows;
  int bytes;
  int slots;
  std::uint32_t* sink;
};

// One slot's rows, by a warp: `bytes` from byte `column` on of each row of a tile.
__device__ void request_slot(const Arguments& a, std::uint64_t* full, std::byte* slot, std::int64_t tile, int column,
                             std::uint64_t policy) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) barrier_expect_bytes(full, a.rows * a.bytes);
  __syncwarp();
  const std::int64_t first = tile * a.tile_step;
  if (a.request == Request::pieces) {
    for (int r = lane; r < a.rows; r += 32) {
      const std::int64_t row = r < a.rows / 2 ? first + r : first + a.to_second + r - a.rows / 2;
      copy_piece(full, slot + r * a.bytes, a.base + row * a.row_bytes + column, a.bytes, policy);
    }
    return;
  }
  if (lane != 0) return;
  if (a.request == Request::side_by_side) {
    copy_piece(full, slot, a.base + (tile * a.row_bytes + column) * a.rows, a.rows * a.bytes, policy);
    return;
  }
  const int box_bytes = a.request == Request::columns_first ? line : a.bytes;
  for (int half = 0; half < 2; ++half) {
    for (int at = 0; at < a.bytes; at += box_bytes) {
      const int at_line = (column + at) / line;
      const int row = static_cast<int>(first + half * a.to_second);
      const bool rows_last = a.request != Request::columns_in_one;
      load_tile_3d(&a.map, full, slot + a.rows / 2 * (half * a.bytes + at), 0, rows_last ? at_line : row,
                   rows_last ? row : at_line, policy);
    }
  }
}

__global__ void __launch_bounds__(threads) read_rows_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) std::byte slots[];
  __shared__ std::uint64_t full[most_slots];
  __shared__ std::uint64_t empty[most_slots];
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.slots; ++i) {
      barrier_init(&full[i], 1);
      barrier_init(&empty[i], consumer_warps);
    }
    fence_barrier_init();
  }
  __syncthreads();

  const bool produces = threadIdx.x >= consumers;
  const std::uint64_t policy = ptx::evict_first_policy();
  if (!produces) {
    ptx::wait_for_previous_grid();
    ptx::launch_next_grid();
  }
  int slot = 0;
  std::uint32_t phase = 0;
  std::uint32_t all = 0xffffffffU;
  const std::int64_t of_tile = a.row_bytes / a.segment_bytes;
  for (std::int64_t segment = blockIdx.x; segment < a.segments; segment += gridDim.x) {
    const std::int64_t tile = segment / of_tile;
    const auto begin = static_cast<int>(segment % of_tile * a.segment_bytes);
    const auto end = static_cast<int>(begin + a.segment_bytes);
    for (int column = begin; column < end; column += a.bytes) {
      std::byte* const there = slots + slot * a.rows * a.bytes;
      if (produces) {
        barrier_wait(&empty[slot], phase ^ 1);
        request_slot(a, &full[slot], there, tile, column, policy);
      } else {
        barrier_wait(&full[slot], phase);
        all &= *reinterpret_cast<const std::uint32_t*>(there + threadIdx.x * 16);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(&empty[slot]);
      }
      if (++slot == a.slots) {
        slot = 0;
        phase ^= 1;
      }
    }
  }
  if (produces) ptx::wait_for_previous_grid();
  if (!produces && all == 0x89abcdefU) *a.sink = all;
}

CUtensorMap map_of(const Way& way, const RowsToRead& weights) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result{};
  require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result),
          "cuTensorMapEncodeTiled");
  cuuint64_t sizes[] = {line / 2, static_cast<cuuint64_t>(weights.row_bytes / line),
                        static_cast<cuuint64_t>(weights.rows)};
  cuuint64_t strides[] = {line, static_cast<cuuint64_t>(weights.row_bytes)};
  cuuint32_t box[] = {line / 2, static_cast<cuuint32_t>(way.request == Request::columns_first ? 1 : way.bytes / line),
                      static_cast<cuuint32_t>(way.rows / 2)};
  if (way.request == Request::columns_in_one) {
    std::swap(sizes[1], sizes[2]);
    std::swap(strides[0], strides[1]);
    std::swap(box[1], box[2]);
  }
  const cuuint32_t element_strides[] = {1, 1, 1};
  CUtensorMap map{};
  const CUresult error = reinterpret_cast<decltype(&::cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(weights.base), sizes, strides, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS) throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(error));
  return map;
}

}  // namespace

void read_rows(const Way& way, const RowsToRead& weights, void* sink, cudaStream_t stream) {
  if (weights.rows % way.rows != 0 || weights.row_bytes % way.bytes != 0) {
    throw std::invalid_argument(std::string(way.name) + ": " + std::to_string(weights.rows) + " rows of " +
                                std::to_string(weights.row_bytes) + " bytes are no tiles of " +
                                std::to_string(way.rows) + " rows by " + std::to_string(way.bytes) + " bytes");
  }
  Arguments a{};
  const bool boxes = way.request != Request::side_by_side && way.request != Request::pieces;
  if (boxes) a.map = map_of(way, weights);
  a.base = static_cast<const std::byte*>(weights.base);
  a.row_bytes = weights.row_bytes;
  a.to_second = weights.halves ? weights.rows / 2 : way.rows / 2;
  a.tile_step = weights.halves ? way.rows / 2 : way.rows;
  a.request = way.request;
  a.rows = way.rows;
  a.bytes = way.bytes;
  a.slots = way.slots;
  a.sink = static_cast<std::uint32_t*>(sink);

  int device = 0;
  int multiprocessors = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
  const std::int64_t tiles = weights.rows / way.rows;
  const std::int64_t most_blocks = std::int64_t{way.blocks} * multiprocessors;
  std::int64_t of_tile = 1;
  while (tiles * of_tile * 2 <= most_blocks && weights.row_bytes % (way.bytes * of_tile * 2) == 0) of_tile *= 2;
  a.segment_bytes = weights.row_bytes / of_tile;
  a.segments = tiles * of_tile;
  const auto blocks = static_cast<unsigned>(std::min(a.segments, most_blocks));
  // Never so little that one more block would fit beside those that are meant to.
  constexpr int of_multiprocessor = 228 * 1024;
  const int shared = std::max(way.slots * way.slot_bytes(), of_multiprocessor / (way.blocks + 1));
  require(cudaFuncSetAttribute(read_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), way.name);
  const Status status = launch_kernel(
      read_rows_kernel, {.grid = dim3(blocks), .block = dim3(threads), .shared_bytes = shared, .early = true}, device,
      stream, a);
  if (!status.ok()) throw std::runtime_error(std::string(way.name) + ": " + status.message());
}

}  // namespace gatefold::bench
