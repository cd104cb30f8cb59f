#pragma once

#include <cute/tensor.hpp>

#include "cuda/common/element.cuh"
#include "cuda/common/stored.cuh"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// Two results, rounded to the element type, lower address first.
template <class Element>
__device__ std::uint32_t pack(float low, float high) {
  const float pair[2] = {low, high};
  return Word<Stored<Element>>::pack(pair);
}

// The way of a tile's results to memory, for epilogues whose accumulators have tokens for rows: registers -> swizzled
// shared memory -> the copy engine's store, which clips rows past T and columns past F (F a multiple of 8: it clips 16
// bytes at a time). Each warpgroup does so for its own 64-row slabs, and the store drains while the next tile is
// multiplied.
//
// A staging slab is 64 rows x chunk columns, swizzled as the store's descriptor says: 16-byte piece p of row r lies at
// piece p ^ (r % 8) for 128-byte rows, p ^ (r / 2 % 4) for 64-byte rows. Other rows leave whole: those of an odd number
// of pieces, 88 and 104 columns, meet no bank twice as they are, those of 80 and 112 columns each twice.
template <Config config, class Element>
struct Staging {
  static constexpr int slabs = config.slabs();  // per warpgroup
  static constexpr int width = config.store_columns();
  static constexpr int chunk = width % 64 == 0 ? 64 : width % 32 == 0 ? 32 : width;
  static constexpr Swizzle swizzle = chunk == 64 ? Swizzle::bytes_128 : chunk == 32 ? Swizzle::bytes_64 : Swizzle::none;
  static constexpr int chunks = width / chunk;
  static constexpr int store_rows = 64;  // of the output, at a time
  static constexpr int slab_elements = 64 * chunk;
  static constexpr int passes = config.columns() / width;
  static constexpr int staged = config.staged_slabs();  // at a time

  struct alignas(1024) Storage {
    Element out[config.store_bytes() / sizeof(Element)];
  };

  static __device__ std::uint32_t swizzled(std::uint32_t row, std::uint32_t column) {
    const std::uint32_t piece = column / 8;
    constexpr std::uint32_t pieces = chunk / 8;
    if constexpr (swizzle == Swizzle::none) return (row * pieces + piece) * 16;
    return (row * pieces + (piece ^ (row * pieces / 8 % pieces))) * 16;
  }

  // Where a warpgroup's slab begins in the output, and box i of a pass's columns.
  static __device__ int row_of(const Tile& tile, int warpgroup, int slab) {
    return tile.first_row + (config.pingpong() ? slab : slab * config.warpgroups + warpgroup) * 64;
  }
  static __device__ int column_of(const Tile& tile, int pass, int i) {
    return tile.n * config.columns() + pass * width + i * chunk;
  }

  // The row of its warp's 16, and of the 16 columns the first or the ninth, whose address a lane gives where whole
  // matrices go to or from a staged slab.
  struct LanePlace {
    std::uint32_t row;
    std::uint32_t column;
  };
  static __device__ LanePlace lane_place(int thread) {
    const std::uint32_t lane = thread % 32;
    return {thread % 128 / 32 * 16 + lane % 16, lane / 16 * 8};
  }

  // 16 columns from column c on, or the last 8: (rows r, r + 8) x (columns c, c + 8).
  static __device__ void store_block(const Element* slab, const LanePlace& lane, int c,
                                     const std::uint32_t (&words)[4]) {
    if (c + 8 == width) return store_half(slab, lane, c, words[0], words[1]);
    const std::uint32_t base = shared_address(slab + c / chunk * slab_elements);
    store_matrices(base + swizzled(lane.row, c % chunk + lane.column), words[0], words[1], words[2], words[3]);
  }
  static __device__ void load_block(const Element* slab, const LanePlace& lane, int c, std::uint32_t (&words)[4]) {
    if (c + 8 == width) return load_half(slab, lane, c, words[0], words[1]);
    const std::uint32_t base = shared_address(slab + c / chunk * slab_elements);
    load_matrices(base + swizzled(lane.row, c % chunk + lane.column), words[0], words[1], words[2], words[3]);
  }
  // 8 columns: rows r, r + 8.
  static __device__ void store_half(const Element* slab, const LanePlace& lane, int c, std::uint32_t low,
                                    std::uint32_t high) {
    const std::uint32_t base = shared_address(slab + c / chunk * slab_elements);
    store_matrices(base + swizzled(lane.row, c % chunk), low, high);
  }
  static __device__ void load_half(const Element* slab, const LanePlace& lane, int c, std::uint32_t& low,
                                   std::uint32_t& high) {
    const std::uint32_t base = shared_address(slab + c / chunk * slab_elements);
    load_matrices(base + swizzled(lane.row, c % chunk), low, high);
  }

  // By one thread: a staged slab leaves.
  static __device__ void store_slab(const CUtensorMap& out, const Element* slab, const Tile& tile, int warpgroup,
                                    int pass, int slab_number) {
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      store_tile_2d(&out, slab + i * slab_elements, column_of(tile, pass, i), row_of(tile, warpgroup, slab_number));
    }
  }

  // tCrC ((2, 2, tile_n / 8), slabs, 1): per 8 columns, two of row r and two of row r + 8. tile_slabs: those with
  // tokens.
  template <class Accumulator, class Packed>
  static __device__ void store_packed(const CUtensorMap& out, const Tile& tile, int tile_slabs, Storage& storage,
                                      int thread, const Accumulator& tCrC, Packed columns_of) {
    const int warpgroup = thread / 128;
    const LanePlace lane = lane_place(thread);
    Element* mine = storage.out + warpgroup * staged * chunks * slab_elements;
#pragma unroll
    for (int stage = 0; stage < passes * slabs / staged; ++stage) {
      const int pass = stage % passes;
      const int first_slab = stage / passes * staged;
      if (first_slab >= tile_slabs) break;
      by_copying_thread([] { store_wait_read(); });
      named_barrier_sync(first_store_barrier + warpgroup, 128);
#pragma unroll
      for (int slab = first_slab; slab < first_slab + staged; ++slab) {
        if (slab >= tile_slabs) break;
        Element* staging = mine + (slab - first_slab) * chunks * slab_elements;
#pragma unroll
        for (int c = 0; c < width; c += 16) {
          std::uint32_t packed[4];
#pragma unroll
          for (int i = 0; i < (c + 8 == width ? 2 : 4); ++i) {  // (rows r, r + 8) x (columns c, c + 8)
            packed[i] = columns_of(tCrC, slab, (pass * width + c) / 8 + i / 2, i % 2);
          }
          store_block(staging, lane, c, packed);
        }
      }
      fence_async_shared();
      named_barrier_sync(first_store_barrier + warpgroup, 128);
      by_copying_thread([&] {
#pragma unroll
        for (int slab = first_slab; slab < first_slab + staged; ++slab) {
          if (slab >= tile_slabs) break;
          const Element* staging = mine + (slab - first_slab) * chunks * slab_elements;
          store_slab(out, staging, tile, warpgroup, pass, slab);
        }
        store_commit();
      });
    }
  }
};

}  // namespace gatefold::cuda::sm90
