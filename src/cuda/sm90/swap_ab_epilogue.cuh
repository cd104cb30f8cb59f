#pragma once

#include "cuda/sm90/epilogue.cuh"

namespace gatefold::cuda::sm90 {

// The way to memory of a tile whose products have weight rows for rows (swap-AB): of each slab of 64 a thread holds two
// neighbouring tokens of column r and of r + 8 for every eight tokens. A transposing stmatrix turns them on their way
// to shared memory.
//
// Each warpgroup stages 64 columns of all the tile's tokens, in rows of 128 bytes that are swizzled as the store's
// descriptor says: 16-byte piece p of row r lies at piece p ^ (r % 8).
template <Config config, class Element>
struct SwapAbStaging : NoInputs {
  static constexpr int chunk = 64;
  static constexpr Swizzle swizzle = Swizzle::bytes_128;
  static constexpr int store_rows = config.tile_m;
  static_assert(config.tile_m % 16 == 0);

  struct alignas(1024) Storage {
    Element out[config.store_bytes() / sizeof(Element)];
  };

  // By a warpgroup: 64 columns from `column` on. pair_of(column, group): of column r or r + 8, two tokens of eight.
  template <class PairOf>
  static __device__ void store_columns(const CUtensorMap& out, const Tile& tile, int column, Storage& storage,
                                       int thread, PairOf pair_of) {
    const int warpgroup = thread / 128;
    Element* mine = storage.out + warpgroup * config.tile_m * chunk;
    by_copying_thread([] { store_wait_read(); });
    named_barrier_sync(first_store_barrier + warpgroup, 128);
    stage(shared_address(mine), thread, pair_of);
    fence_async_shared();
    named_barrier_sync(first_store_barrier + warpgroup, 128);
    by_copying_thread([&] {
      store_tile_2d(&out, mine, column, tile.first_row);
      store_commit();
    });
  }

 private:
  // Of the four matrices of an stmatrix lane l gives the address of row l % 8, a token, of matrix l / 8: the first two
  // are the warp's 16 columns of eight tokens, the others those of the next eight.
  template <class PairOf>
  static __device__ void stage(std::uint32_t base, int thread, PairOf pair_of) {
    const std::uint32_t lane = thread % 32;
    const std::uint32_t row = lane / 16 * 8 + lane % 8;
    const std::uint32_t piece = thread % 128 / 32 * 2 + lane / 8 % 2;
    const std::uint32_t address = base + row * 128 + (piece ^ lane % 8) * 16;
#pragma unroll
    for (int token = 0; token < config.tile_m; token += 16) {
      std::uint32_t packed[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Pair pair = pair_of(i % 2, token / 8 + i / 2);
        packed[i] = pack<Element>(pair.low, pair.high);
      }
      store_matrices_transposed(address + token * 128, packed[0], packed[1], packed[2], packed[3]);
    }
  }
};

// gate_up: gate's sums are in the first slab and up's in the second.
template <Config config, class Element>
struct SwapAbEpilogue : SwapAbStaging<config, Element>, GateUpArguments {
  using Buffer = SwapAbStaging<config, Element>;
  static_assert(config.product == Product::gate_up && config.slabs() == 2);

  template <class Accumulator>
  static __device__ void add_biases(const Arguments& arguments, const Tile& tile, int thread, Accumulator& tCrC) {
    const auto first = static_cast<std::uint32_t>(first_column(tile, thread / 128));
    add_to_rows<config, Stored<Element>>(arguments.gate_bias, first, 0, thread, tCrC);
    add_to_rows<config, Stored<Element>>(arguments.up_bias, first, 1, thread, tCrC);
  }

  // tCrC ((2, 2, tile_m / 8), 2, 1): per 8 tokens, two of column r and two of column r + 8; gate, up.
  template <class Accumulator>
  static __device__ void store(const CUtensorMap& out, const Arguments& arguments, const Tile& tile, int /*tile_slabs*/,
                               typename Buffer::Storage& storage, typename Buffer::Inputs& /*inputs*/, int thread,
                               const Accumulator& tCrC) {
    using namespace cute;
    // Two tokens of a column, of which the second may not be there: its sums are whatever lay in the ring.
    arguments.combine.template dispatch<Reciprocals::own>([&](auto act) {
      Buffer::store_columns(out, tile, first_column(tile, thread / 128), storage, thread, [&](int column, int group) {
        return act(tCrC(make_coord(0, column, group), 0, 0), tCrC(make_coord(0, column, group), 1, 0),
                   tCrC(make_coord(1, column, group), 0, 0), tCrC(make_coord(1, column, group), 1, 0));
      });
    });
  }

 private:
  static __device__ int first_column(const Tile& tile, int warpgroup) {
    return tile.n * config.columns() + (config.pingpong() ? 0 : warpgroup * Buffer::chunk);
  }
};

// gemm: each slab is 64 columns of its own, in ping-pong both of a tile a warpgroup's, or else one.
template <Config config, class Element>
struct PlainSwapAbEpilogue : SwapAbStaging<config, Element>, PlainArguments {
  using Buffer = SwapAbStaging<config, Element>;
  static_assert(config.product == Product::plain && config.slabs() == (config.pingpong() ? 2 : 1));

  template <class Accumulator>
  static __device__ void add_biases(const Arguments& arguments, const Tile& tile, int thread, Accumulator& tCrC) {
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      add_to_rows<config, Stored<Element>>(arguments.bias, static_cast<std::uint32_t>(first_column(tile, slab, thread)),
                                           slab, thread, tCrC);
    }
  }

  // tCrC ((2, 2, tile_m / 8), 2, 1): per 8 tokens, two of column r and two of column r + 8, of either slab.
  template <class Accumulator>
  static __device__ void store(const CUtensorMap& out, const Arguments& /*arguments*/, const Tile& tile,
                               int /*tile_slabs*/, typename Buffer::Storage& storage,
                               typename Buffer::Inputs& /*inputs*/, int thread, const Accumulator& tCrC) {
    using namespace cute;
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      Buffer::store_columns(out, tile, first_column(tile, slab, thread), storage, thread, [&](int column, int group) {
        return Pair{tCrC(make_coord(0, column, group), slab, 0), tCrC(make_coord(1, column, group), slab, 0)};
      });
    }
  }

 private:
  static __device__ int first_column(const Tile& tile, int slab, int thread) {
    return tile.n * config.columns() + (config.pingpong() ? slab : thread / 128) * Buffer::chunk;
  }
};

}  // namespace gatefold::cuda::sm90
