#pragma once

#include <type_traits>

#include "cuda/sm90/epilogue.cuh"

namespace gatefold::cuda::sm90 {

// gemm_gated, a product that is gated by values in memory: the copy engine brings the gate tile in boxes of 64 rows x
// gate_columns() into buffers, in the swizzle in which the output leaves them, and h replaces each box in place. A
// warpgroup has gate_buffers() of them, used by turns: box i of its tile lies in buffer i % buffers.
//
// All of it is one warpgroup's own affair, whichever tile it has: blocks of a cluster each bring their own gate tile,
// and ping-pong warpgroups each have a tile and buffers of their own. With three buffers, of a tile of six boxes:
//
//   elected thread  | main loop, after k-step 0 | main loop | h of 0 | h of 1 leaves; 0  | h of 2 leaves; 1  | ..
//                   | stores of the tile before |           | leaves | is read: expect,  | is read: expect,  |
//                   | read: load boxes 0, 1, 2  |           |        | load box 3        | load box 4        |
//   copy engine     |                           | gate ->   | h <-   | h <-, gate ->     | h <-, gate ->     |
//   all 128 threads |        multiply           | multiply  | box 0  | box 1             | box 2             | box 3 ..
//
// So the store of one box is read and the load of another under way while a third is combined. With two buffers the
// thread waits for the store that it has just issued, and the load is under way while the other box is combined.
//
// came[b]: one arrival a phase, the elected thread's, that announces the bytes of the box, and those bytes. All
// threads of the warpgroup wait for every phase, and there is no next load before they have: it follows their named
// barrier. So no phase is missed. A tile's boxes need not be a multiple of the buffers, nor the same for every tile, so
// the phases that come next are kept, a bit for each buffer: all read them when a tile is multiplied, and the elected
// thread writes those of the next tile after the first box's named barrier and before the last one's. Nothing is
// requested that is not waited for: slabs with tokens are counted alike in both, and a block or warpgroup without a
// tile does neither.
//
// A buffer is free for the next gate values when the store out of it has been read, for which the thread waits that
// issued it, as it then issues the load. What threads read and wrote there before lies before the store: fence, named
// barrier.
//
// The kernel before may have written the gate values. A first k-step of x has come, which was requested after that
// kernel's end (Producer, Feeder), before the first of them is.
template <Config config, class Element>
struct GateTileEpilogue : Staging<config, Element> {
  using Buffer = Staging<config, Element>;
  using Storage = typename Buffer::Storage;
  static constexpr bool has_inputs = true;
  static constexpr int buffers = config.gate_buffers();
  static constexpr int boxes = Buffer::slabs * Buffer::passes;  // of a whole tile, one slab's after the other's
  static constexpr int behind = buffers > 2 ? 1 : 0;  // stores that may be under way when a buffer is loaded again
  static_assert(buffers > 1 && Buffer::passes > 1 && Buffer::chunks == 1 && !config.swap_ab && config.split_k == 1);

  struct Arguments {
    CUtensorMap gate;  // [T, F], in the output's boxes
    ExactCombine combine;
    TileBias bias;
  };

  struct Inputs {
    std::uint64_t came[config.warpgroups][buffers];
    std::uint32_t phases[config.warpgroups];
  };

  template <class Encode>
  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands, Encode encode) {
    arguments.combine = ExactCombine(problem.activation, problem.batch_invariant);
    arguments.bias = TileBias(problem, operands, Half::up);
    return encode(arguments.gate, operands.gate, problem.ld_gate);
  }

  static __device__ void init(const Arguments& arguments, Inputs& inputs) {
    prefetch_descriptor(&arguments.gate);
    for (int warpgroup = 0; warpgroup < config.warpgroups; ++warpgroup) {
      for (int buffer = 0; buffer < buffers; ++buffer) barrier_init(&inputs.came[warpgroup][buffer], 1);
      inputs.phases[warpgroup] = 0;
    }
    fence_barrier_init();
  }

  // By the thread that copies: requests the first boxes, and sets the others out for L2.
  static __device__ void prefetch(const Arguments& arguments, const Tile& tile, int tile_slabs, Storage& storage,
                                  Inputs& inputs, int thread) {
    const int warpgroup = thread / 128;
    const int tile_boxes = tile_slabs * Buffer::passes;
    store_wait_read();
    // Not unrolled: all of this stands in the main loop.
#pragma unroll 1
    for (int box = 0; box < min(tile_boxes, buffers); ++box) load(arguments, tile, warpgroup, box, storage, inputs);
#pragma unroll 1
    for (int box = buffers; box < tile_boxes; ++box) {
      prefetch_tile_2d(&arguments.gate, column_of(tile, box), row_of(tile, warpgroup, box));
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
    arguments.combine.template dispatch<Reciprocals::either>([&](auto act) {
      const int warpgroup = thread / 128;
      const int tile_boxes = tile_slabs * Buffer::passes;
      const std::uint32_t phases = inputs.phases[warpgroup];
#pragma unroll
      for (int box = 0; box < boxes; ++box) {
        if (box >= tile_boxes) break;
        Element* buffer = buffer_of(storage, warpgroup, box);
        barrier_wait(&inputs.came[warpgroup][box % buffers], (phases >> box % buffers ^ box / buffers) & 1U);
        __syncwarp();  // what follows wants whole warps
        combine_box(buffer, thread, tCrC, act, box % Buffer::passes, box / Buffer::passes);
        fence_async_shared();
        named_barrier_sync(first_store_barrier + warpgroup, 128);
        by_copying_thread([&] {
          store_tile_2d(&out, buffer, column_of(tile, box), row_of(tile, warpgroup, box));
          store_commit();
          const int next = box - behind + buffers;
          if (box >= behind && next < tile_boxes) {
            store_wait_read<behind>();
            load(arguments, tile, warpgroup, next, storage, inputs);
          }
          if (box == 0) inputs.phases[warpgroup] = phases ^ odd_uses(tile_boxes);
        });
      }
    });
  }

 private:
  static __device__ int column_of(const Tile& tile, int box) {
    return Buffer::column_of(tile, box % Buffer::passes, 0);
  }
  static __device__ int row_of(const Tile& tile, int warpgroup, int box) {
    return Buffer::row_of(tile, warpgroup, box / Buffer::passes);
  }
  static __device__ Element* buffer_of(Storage& storage, int warpgroup, int box) {
    return storage.out + (warpgroup * buffers + box % buffers) * Buffer::slab_elements;
  }

  // The buffers that a tile uses an odd number of times, a bit for each.
  static __device__ std::uint32_t odd_uses(int tile_boxes) {
    std::uint32_t odd = 0;
#pragma unroll
    for (int buffer = 0; buffer < buffers; ++buffer) {
      odd |= static_cast<std::uint32_t>((tile_boxes - buffer + buffers - 1) / buffers % 2) << buffer;
    }
    return odd;
  }

  // The gate values of a box. What lies past the last token or column comes as zeros.
  static __device__ void load(const Arguments& arguments, const Tile& tile, int warpgroup, int box, Storage& storage,
                              Inputs& inputs) {
    std::uint64_t* came = &inputs.came[warpgroup][box % buffers];
    barrier_expect_bytes(came, Buffer::slab_elements * static_cast<int>(sizeof(Element)));
    load_tile_2d(&arguments.gate, came, buffer_of(storage, warpgroup, box), column_of(tile, box),
                 row_of(tile, warpgroup, box));
  }

  // A warp reads its 16 rows of gate, as the accumulators are laid out, and writes h to the same place.
  template <class Accumulator, class Act>
  static __device__ void combine_box(Element* staging, int thread, const Accumulator& tCrC, Act act, int pass,
                                     int slab) {
    if constexpr (std::is_same_v<Act, FourSilu>) {
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

  // 16 columns at a time, and the next 16 are on their way meanwhile; where accumulators leave too few registers, 8.
  template <bool together, class Accumulator, class Act>
  static __device__ void combine_blocks(Element* staging, int thread, const Accumulator& tCrC, Act act, int pass,
                                        int slab) {
    using namespace cute;
    constexpr int width = Buffer::width;
    constexpr bool ahead = config.accumulators() <= 208;
    constexpr int step = ahead ? 16 : 8;
    const auto lane = Buffer::lane_place(thread);
    std::uint32_t gate[4];
    if (ahead) Buffer::load_block(staging, lane, 0, gate);
#pragma unroll
    for (int c = 0; c < width; c += step) {
      std::uint32_t next[4];
      if (ahead && c + step < width) Buffer::load_block(staging, lane, c + step, next);
      if (!ahead) Buffer::load_half(staging, lane, c, gate[0], gate[1]);
      std::uint32_t h[4];
#pragma unroll
      for (int i = 0; i < (!ahead || c + 8 == width ? 2 : 4); i += 2) {  // columns c or c + 8, and their neighbours
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
      if (ahead) {
        Buffer::store_block(staging, lane, c, h);
      } else {
        Buffer::store_half(staging, lane, c, h[0], h[1]);
      }
#pragma unroll
      for (int i = 0; ahead && i < 4; ++i) gate[i] = next[i];
    }
  }
};

}  // namespace gatefold::cuda::sm90
