#pragma once

#include "core/problem.hpp"
#include "cuda/common/combine.cuh"
#include "cuda/sm90/chain.hpp"
#include "cuda/sm90/staging.cuh"

// What a chain (chain.cuh) does with the sums of a tile. Both epilogues leave the tile on its way to memory: who stores
// it waits for it, and tells.
namespace gatefold::cuda::sm90 {

// The chain takes what an epilogue needs from its own arguments.
struct NoArguments {
  struct Arguments {};

  template <class Encode>
  static Status fill(Arguments& /*arguments*/, const Problem& /*problem*/, const Operands& /*operands*/,
                     Encode /*encode*/) {
    return {};
  }
};

// silu(gate) up of sums that 1/rms of their row multiplies first, the same arithmetic as RowScaleEpilogue's.
template <Config config, class Element>
struct ChainGateUpEpilogue : Staging<config, Element>, NoArguments {
  using Buffer = Staging<config, Element>;
  static constexpr int up = config.tile_n / 16;  // up's first group of 8 columns
  static_assert(Buffer::slabs == 1 && Buffer::passes == 1 && Buffer::chunk % 16 == 0);

  // By a warpgroup with rows. inverse_rms: of the tile's rows, in shared memory. Half of the columns leave while the
  // others are made. The tile before has left the buffer, and all threads know.
  template <class Accumulator>
  static __device__ __forceinline__ void store(const CUtensorMap& out, const Tile& tile,
                                               typename Buffer::Storage& storage,
                                               const float (&inverse_rms)[config.tile_m], int thread,
                                               const Accumulator& tCrC) {
    using namespace cute;
    const int warpgroup = thread / 128;
    const int first = thread / 32 * 16 + thread % 32 / 4;
    const float scale[2] = {inverse_rms[first], inverse_rms[first + 8]};
    const auto h = [&](int group, int row) {
      const float by = scale[row];
      const float g0 = tCrC(make_coord(0, row, group), 0, 0) * by;
      const float u0 = tCrC(make_coord(0, row, group + up), 0, 0) * by;
      const float g1 = tCrC(make_coord(1, row, group), 0, 0) * by;
      const float u1 = tCrC(make_coord(1, row, group + up), 0, 0) * by;
      const Pair pair = Combine::sigmoid_pair(g0, g0, u0, g1, g1, u1);
      return pack<Element>(pair.low, pair.high);
    };
    const typename Buffer::LanePlace lane = Buffer::lane_place(thread);
    Element* mine = storage.out + warpgroup * Buffer::chunks * Buffer::slab_elements;
#pragma unroll
    for (int i = 0; i < Buffer::chunks; ++i) {
#pragma unroll
      for (int c = i * Buffer::chunk; c < (i + 1) * Buffer::chunk; c += 16) {
        const std::uint32_t packed[4] = {h(c / 8, 0), h(c / 8, 1), h(c / 8 + 1, 0), h(c / 8 + 1, 1)};
        Buffer::store_block(mine, lane, c, packed);
      }
      fence_async_shared();
      named_barrier_sync(first_store_barrier + warpgroup, 128);
      by_copying_thread([&] {
        store_tile_2d(&out, mine + i * Buffer::slab_elements, Buffer::column_of(tile, 0, i),
                      Buffer::row_of(tile, warpgroup, 0));
        store_commit();
      });
      __syncwarp();
    }
  }
};

constexpr Config twice_as_wide(Config config) {
  config.tile_n *= 2;
  return config;
}

// Down's sums, rounded, and of what is stored the squares: for each row their sum over the tile's columns.
//
// Only one warpgroup of a block stores a tile, so that its columns pass through the buffer all at once, as half of a
// tile twice as wide would.
template <Config config, class Element>
struct ChainDownEpilogue : NoArguments {
  using Buffer = Staging<twice_as_wide(config), Element>;
  static constexpr int store_rows = Buffer::store_rows;
  static constexpr int chunk = Buffer::chunk;
  static constexpr Swizzle swizzle = Buffer::swizzle;
  static constexpr int groups = config.tile_n / 8;
  static_assert(Buffer::chunks == 1 && chunk == config.tile_n && config.slabs() == 1 && config.split_k == 2);

  struct alignas(1024) Storage {
    Element out[Buffer::slab_elements];
  };

  // By the warpgroup that has the tile's sums. squares: [D / tile_n, rows].
  template <class Accumulator>
  static __device__ __forceinline__ void store(const CUtensorMap& out, const Tile& tile, const Geometry& geometry,
                                               Storage& storage, double* squares, int thread, const Accumulator& tCrC) {
    using namespace cute;
    const int warpgroup = thread / 128;
    const typename Buffer::LanePlace lane = Buffer::lane_place(thread);
    std::uint32_t words[groups][2];  // of rows r and r + 8
#pragma unroll
    for (int group = 0; group < groups; ++group) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        words[group][row] = pack<Element>(tCrC(make_coord(0, row, group), 0, 0), tCrC(make_coord(1, row, group), 0, 0));
      }
    }
    // The store before has left the buffer: its thread has waited for more than that.
#pragma unroll
    for (int group = 0; group < groups; group += 2) {
      const std::uint32_t four[4] = {words[group][0], words[group][1], words[group + 1][0], words[group + 1][1]};
      Buffer::store_block(storage.out, lane, group * 8, four);
    }
    fence_async_shared();
    named_barrier_sync(first_store_barrier + warpgroup, 128);
    const int first_row = tile.first_row + warpgroup * 64;
    by_copying_thread([&] {
      store_tile_2d(&out, storage.out, tile.n * config.tile_n, first_row);
      store_commit();
    });
    __syncwarp();
    // While the copy engine is at work. What lies past the last column is no output.
    const int groups_there = min(groups, (geometry.columns - tile.n * config.tile_n) / 8);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      double sums[2] = {};  // additions in double precision take long
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        float values[2];
        Word<Stored<Element>>::unpack(words[group][row], values);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const double value = group < groups_there ? values[i] : 0.0F;
          sums[i] = fma(value, value, sums[i]);
        }
      }
      double sum = sums[0] + sums[1];
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      const int at = first_row + thread % 128 / 32 * 16 + thread % 32 / 4 + 8 * row;
      if (thread % 4 == 0 && at < geometry.tokens)
        squares[tile.n * ChainState::squares_stride(geometry.tokens) + at] = sum;
    }
    named_barrier_sync(first_store_barrier + warpgroup, 128);  // whoever tells of the tile, tells of all of it
  }
};

}  // namespace gatefold::cuda::sm90
