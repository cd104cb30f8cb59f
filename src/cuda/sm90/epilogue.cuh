#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm90/combine.cuh"
#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"
#include "cuda/sm90/tensor_map.hpp"

namespace gatefold::cuda::sm90 {

// Accumulators -> activation, product, one rounding -> swizzled shared memory -> the copy engine's store, which clips
// rows past T and columns past F (F a multiple of 8: it clips 16 bytes at a time). Each warpgroup does so for its own
// 64-row slabs, and the store drains while the next tile is multiplied.
//
// A staging slab is 64 rows x chunk columns, swizzled as the store's descriptor says: 16-byte piece p of row r lies at
// piece p ^ (r % 8) for 128-byte rows, p ^ (r / 2 % 4) for 64-byte rows, p ^ (r / 4 % 2) for 32-byte rows.
template <Config config, class Element>
struct Epilogue {
  static constexpr int slabs = config.tile_m / (64 * config.warpgroups_per_tile());  // per warpgroup
  static constexpr int chunk = config.store_columns() % 64 == 0 ? 64 : config.store_columns() % 32 == 0 ? 32 : 16;
  static constexpr Swizzle swizzle = chunk == 64   ? Swizzle::bytes_128
                                     : chunk == 32 ? Swizzle::bytes_64
                                                   : Swizzle::bytes_32;
  static constexpr int chunks = config.store_columns() / chunk;
  static constexpr int slab_elements = 64 * chunk;
  static constexpr int passes = config.columns() / config.store_columns();

  struct alignas(1024) Storage {
    Element out[config.store_bytes() / 2];
  };

  static __device__ std::uint32_t swizzled(std::uint32_t row, std::uint32_t column) {
    const std::uint32_t piece = column / 8;
    constexpr std::uint32_t pieces = chunk / 8;
    return (row * pieces + (piece ^ (row * pieces / 8 % pieces))) * 16;
  }

  // tCrC ((2, 2, tile_n / 8), slabs, 1): per 8 columns, two of row r and two of row r + 8.
  template <class Accumulator, class Packed>
  static __device__ void store(const CUtensorMap& out, const TileIndex& tile, Storage& storage, int thread,
                               const Accumulator& tCrC, Packed columns_of) {
    const int warpgroup = thread / 128;
    const bool elected = thread % 128 == 0;
    const std::uint32_t lane = thread % 32;
    const std::uint32_t row = thread % 128 / 32 * 16 + lane % 16;  // this lane's address row in a 64-row slab
    const std::uint32_t column_of_lane = lane / 16 * 8;

    Element* mine = storage.out + warpgroup * slabs * chunks * slab_elements;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      if (elected) store_wait_read();
      named_barrier_sync(first_store_barrier + warpgroup, 128);
#pragma unroll
      for (int slab = 0; slab < slabs; ++slab) {
#pragma unroll
        for (int c = 0; c < config.store_columns(); c += 16) {
          std::uint32_t packed[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {  // (rows r, r + 8) x (columns c, c + 8)
            packed[i] = columns_of(tCrC, slab, (pass * config.store_columns() + c) / 8 + i / 2, i % 2);
          }
          Element* base = mine + (slab * chunks + c / chunk) * slab_elements;
          store_matrices(shared_address(base) + swizzled(row, c % chunk + column_of_lane), packed[0], packed[1],
                         packed[2], packed[3]);
        }
      }
      fence_async_shared();
      named_barrier_sync(first_store_barrier + warpgroup, 128);
      if (elected) {
#pragma unroll
        for (int slab = 0; slab < slabs; ++slab) {
          const int first_row =
              tile.m * config.tile_m + (config.pingpong ? slab : slab * config.warpgroups + warpgroup) * 64;
#pragma unroll
          for (int i = 0; i < chunks; ++i) {
            store_tile_2d(&out, mine + (slab * chunks + i) * slab_elements,
                          tile.n * config.columns() + pass * config.store_columns() + i * chunk, first_row);
          }
        }
        store_commit();
      }
    }
  }

  template <class Accumulator>
  static __device__ void run(const CUtensorMap& out, const TileIndex& tile, const Combine& combine, Storage& storage,
                             int thread, const Accumulator& tCrC) {
    using namespace cute;
    if constexpr (config.gated) {
      constexpr int up = config.tile_n / 16;  // up's first group of 8 columns
      combine.dispatch([&](auto act) {
        store(out, tile, storage, thread, tCrC, [&](const Accumulator& acc, int slab, int group, int half) {
          const Pair h = act(acc(make_coord(0, half, group), slab, 0), acc(make_coord(0, half, group + up), slab, 0),
                             acc(make_coord(1, half, group), slab, 0), acc(make_coord(1, half, group + up), slab, 0));
          return pack<Element>(h.low, h.high);
        });
      });
    } else {
      store(out, tile, storage, thread, tCrC, [](const Accumulator& acc, int slab, int group, int half) {
        return pack<Element>(acc(make_coord(0, half, group), slab, 0), acc(make_coord(1, half, group), slab, 0));
      });
    }
  }
};

}  // namespace gatefold::cuda::sm90
