#pragma once

#include <type_traits>

#include "cuda/sm90/epilogue.cuh"

namespace gatefold::cuda::sm90 {

// gemm_gated, a product that is gated by values in memory: the copy engine brings the gate tile into the staging
// buffer, in the pieces and the swizzle in which the output leaves it, and h replaces it in place. A warpgroup's
// staging buffer holds `staged` slabs of half of the tile's columns, so every slab of it is used twice for a tile, and
// has a barrier of its own, `came`.
//
// All of it is one warpgroup's own affair, whichever tile it has: blocks of a cluster each bring their own gate tile,
// and ping-pong warpgroups each have a tile and buffers of their own. Of a tile with tokens for the warpgroup, slab s:
//
//   elected thread  | main loop, after k-step 0 | main loop | pass 0: h stored | reads done        | pass 1: h stored |
//                   | reads of the tile before  |           | to shared memory,| expect, load      | to shared memory,|
//                   | done; expect, load pass 0 |           | then to global   | pass 1            | then to global   |
//   copy engine     |                           | gate ->   |                  | h <- , then gate -> slab s |   h <-  |
//   all 128 threads |        multiply           | multiply  | wait for came[s], phase 0  | wait for came[s], phase 1 |
//
// came[s]: one arrival a phase, the elected thread's, that announces the bytes of the slab, and those bytes. All
// threads of the warpgroup wait for every phase, and there is no next load before they have: it follows their named
// barrier. So no phase is missed, and as a tile takes two phases of a barrier or, for a slab without tokens, none, its
// passes wait for phases 0 and 1 by parity whatever came before. Nothing is requested that is not waited for: slabs
// with tokens are counted alike in both, and a block or warpgroup without a tile does neither.
//
// A slab is free for the next gate values when the stores out of it have been read, for which the thread waits that
// issued them, as it then issues the load. What threads read and wrote there before lies before the store: fence, named
// barrier.
//
// The kernel before may have written the gate values. A first k-step of x has come, which was requested after that
// kernel's end (Producer, Feeder), before the first of them is.
template <Config config, class Element>
struct GateTileEpilogue : Staging<config, Element> {
  using Buffer = Staging<config, Element>;
  using Storage = typename Buffer::Storage;
  static constexpr bool has_inputs = true;
  static_assert(Buffer::passes == 2 && !config.swap_ab && config.split_k == 1);

  struct Arguments {
    CUtensorMap gate;  // [T, F], in the output's boxes
    ExactCombine combine;
    TileBias bias;
  };

  struct Inputs {
    std::uint64_t came[config.warpgroups][Buffer::staged];
  };

  template <class Encode>
  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands, Encode encode) {
    arguments.combine = ExactCombine(problem.activation);
    arguments.bias = TileBias(problem, operands, Half::up);
    return encode(arguments.gate, operands.gate, problem.ld_gate);
  }

  static __device__ void init(const Arguments& arguments, Inputs& inputs) {
    prefetch_descriptor(&arguments.gate);
    for (int warpgroup = 0; warpgroup < config.warpgroups; ++warpgroup) {
      for (int slab = 0; slab < Buffer::staged; ++slab) barrier_init(&inputs.came[warpgroup][slab], 1);
    }
    fence_barrier_init();
  }

  // By a consumer warpgroup's first thread: requests what the first pass over the tile reads. What the second reads
  // sets out for L2.
  static __device__ void prefetch(const Arguments& arguments, const Tile& tile, int tile_slabs, Storage& storage,
                                  Inputs& inputs, int thread) {
    const int warpgroup = thread / 128;
    store_wait_read();
    // Not unrolled: all of this stands in the main loop.
#pragma unroll 1
    for (int slab = 0; slab < min(tile_slabs, Buffer::staged); ++slab) {
      load(arguments, tile, warpgroup, 0, slab, slab, storage, inputs);
    }
#pragma unroll 1
    for (int slab = 0; slab < tile_slabs; ++slab) {
#pragma unroll 1
      for (int pass = slab < Buffer::staged ? 1 : 0; pass < Buffer::passes; ++pass) {
        for (int i = 0; i < Buffer::chunks; ++i) {
          prefetch_tile_2d(&arguments.gate, Buffer::column_of(tile, pass, i), Buffer::row_of(tile, warpgroup, slab));
        }
      }
    }
  }

  template <class Accumulator>
  static __device__ void add_biases(const Arguments& arguments, const Tile& tile, int thread, Accumulator& tCrC) {
    add_to_columns<config, Stored<Element>>(arguments.bias, tile, 0, thread, tCrC);
  }

  // Inlined at this length, too (Block).
  template <class Accumulator>
  static __device__ __forceinline__ void store(const CUtensorMap& out, const Arguments& arguments, const Tile& tile,
                                               int tile_slabs, Storage& storage, Inputs& inputs, int thread,
                                               const Accumulator& tCrC) {
    arguments.combine.dispatch([&](auto act) {
      constexpr int stages = Buffer::passes * Buffer::slabs / Buffer::staged;
      const int warpgroup = thread / 128;
#pragma unroll
      for (int stage = 0; stage < stages; ++stage) {
        const int pass = stage % Buffer::passes;
#pragma unroll
        for (int staged = 0; staged < Buffer::staged; ++staged) {
          const int slab = stage / Buffer::passes * Buffer::staged + staged;
          if (slab >= tile_slabs) break;
          barrier_wait(&inputs.came[warpgroup][staged], static_cast<std::uint32_t>(pass));
          __syncwarp();  // what follows wants whole warps
          combine_slab(staging_of(storage, warpgroup, staged), thread, tCrC, act, pass, slab);
          fence_async_shared();
          named_barrier_sync(first_store_barrier + warpgroup, 128);
          if (thread % 128 == 0) {
            Buffer::store_slab(out, staging_of(storage, warpgroup, staged), tile, warpgroup, pass, slab);
            store_commit();
            const int next_pass = (stage + 1) % Buffer::passes;
            const int next_slab = (stage + 1) / Buffer::passes * Buffer::staged + staged;
            if (stage + 1 < stages && next_slab < tile_slabs) {
              store_wait_read();
              load(arguments, tile, warpgroup, next_pass, next_slab, staged, storage, inputs);
            }
          }
        }
      }
    });
  }

 private:
  static __device__ Element* staging_of(Storage& storage, int warpgroup, int staged) {
    return storage.out + (warpgroup * Buffer::staged + staged) * Buffer::chunks * Buffer::slab_elements;
  }

  // The gate values of a slab, in one pass's columns. What lies past the last token or column comes as zeros.
  static __device__ void load(const Arguments& arguments, const Tile& tile, int warpgroup, int pass, int slab,
                              int staged, Storage& storage, Inputs& inputs) {
    constexpr int bytes = Buffer::chunks * Buffer::slab_elements * static_cast<int>(sizeof(Element));
    std::uint64_t* came = &inputs.came[warpgroup][staged];
    barrier_expect_bytes(came, bytes);
    Element* to = staging_of(storage, warpgroup, staged);
#pragma unroll
    for (int i = 0; i < Buffer::chunks; ++i) {
      load_tile_2d(&arguments.gate, came, to + i * Buffer::slab_elements, Buffer::column_of(tile, pass, i),
                   Buffer::row_of(tile, warpgroup, slab));
    }
  }

  // A warp reads its 16 rows of gate, as the accumulators are laid out, and writes h to the same place.
  template <class Accumulator, class Act>
  static __device__ void combine_slab(Element* staging, int thread, const Accumulator& tCrC, Act act, int pass,
                                      int slab) {
    if constexpr (std::is_same_v<Act, FourSilu> && config.has_producers()) {
      if (within(staging, thread, Act::least)) return combine_blocks<true>(staging, thread, tCrC, act, pass, slab);
    }
    combine_blocks<false>(staging, thread, tCrC, act, pass, slab);
  }

  // Whether none of the warp's gate values is NaN or below `least`. By the whole warp.
  static __device__ bool within(const Element* staging, int thread, float least) {
    using Two = std::conditional_t<std::is_same_v<Stored<Element>, __half>, __half2, __nv_bfloat162>;
    const auto lane = Buffer::lane_place(thread);
    Two smallest;
#pragma unroll
    for (int c = 0; c < Buffer::width; c += 16) {
      std::uint32_t gate[4];
      Buffer::load_block(staging, lane, c, gate);
#pragma unroll
      for (int i = 0; i < (c + 8 == Buffer::width ? 2 : 4); ++i) {
        const Two pair = reinterpret_cast<const Two&>(gate[i]);
        smallest = c + i == 0 ? pair : __hmin2_nan(smallest, pair);
      }
    }
    float values[2];
    Word<Stored<Element>>::unpack(reinterpret_cast<const std::uint32_t&>(smallest), values);
    return __all_sync(~0U, values[0] >= least && values[1] >= least) != 0;
  }

  // 16 columns at a time; the next 16 are on their way meanwhile.
  template <bool together, class Accumulator, class Act>
  static __device__ void combine_blocks(Element* staging, int thread, const Accumulator& tCrC, Act act, int pass,
                                        int slab) {
    using namespace cute;
    constexpr int width = Buffer::width;
    const auto lane = Buffer::lane_place(thread);
    std::uint32_t gate[4];
    Buffer::load_block(staging, lane, 0, gate);
#pragma unroll
    for (int c = 0; c < width; c += 16) {
      std::uint32_t next[4];
      if (c + 16 < width) Buffer::load_block(staging, lane, c + 16, next);
      std::uint32_t h[4];
#pragma unroll
      for (int i = 0; i < (c + 8 == width ? 2 : 4); i += 2) {  // columns c or c + 8, and their neighbours
        const int group = (pass * width + c) / 8 + i / 2;
        float g[4];  // rows r and r + 8
        float u[4];
        float values[4];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          float pair[2];
          Word<Stored<Element>>::unpack(gate[i + row], pair);
#pragma unroll
          for (int column = 0; column < 2; ++column) {
            g[2 * row + column] = pair[column];
            u[2 * row + column] = tCrC(make_coord(column, row, group), slab, 0);
          }
        }
        if constexpr (together) {
          Act::gated(g, u, values);
        } else {
#pragma unroll
          for (int row = 0; row < 2; ++row) {
            const Pair pair = act(g[2 * row], u[2 * row], g[2 * row + 1], u[2 * row + 1]);
            values[2 * row] = pair.low;
            values[2 * row + 1] = pair.high;
          }
        }
        h[i] = pack<Element>(values[0], values[1]);
        h[i + 1] = pack<Element>(values[2], values[3]);
      }
      Buffer::store_block(staging, lane, c, h);
#pragma unroll
      for (int i = 0; i < 4; ++i) gate[i] = next[i];
    }
  }
};

}  // namespace gatefold::cuda::sm90
