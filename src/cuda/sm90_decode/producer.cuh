#pragma once

#include "cuda/copy_engine/copies.cuh"
#include "cuda/sm90_decode/pipeline.cuh"
#include "cuda/sm90_decode/scheduler.cuh"

namespace gatefold::cuda::sm90_decode {

// Loads say who requests the operands of the copy engine, and when. That the kernel before has ended is waited for here
// and nowhere else, in every thread before the first that it reads or writes of what that kernel may have to do with.
//
// One thread requests: it runs ahead of the consumers, through all slots of the ring and on through the tiles.
//
// Weights of a slab that has fewer than 64 rows leave the rest of its place in the ring as it was: the sums of those
// rows are nobody's.
template <Config config, class Element>
class Producer {
 public:
  struct Arguments {
    CUtensorMap x;         // [T, D], boxes of tokens x 64
    CUtensorMap slabs[2];  // boxes of slab_rows x 64: gate's and up's, or of a single weight its own, twice
  };

  __device__ Producer(const Arguments& arguments, const Geometry& geometry, const ClusterPlace& place,
                      Slots<config, Element>& slots, Ring<config>& ring)
      : arguments_(arguments), geometry_(geometry), place_(place), slots_(slots), ring_(ring) {}

  // By one thread of a block.
  static __device__ void prefetch_descriptors(const Arguments& arguments) {
    prefetch_descriptor(&arguments.x);
    prefetch_descriptor(&arguments.slabs[0]);
    prefetch_descriptor(&arguments.slabs[1]);
  }

  // By each thread that stores, before it does: the kernel before may still read what it stores to, and write the
  // biases.
  static __device__ void begin_to_store() { wait_for_previous_grid(); }

  // By the producer, before its first tile. The kernel before may still write x, and the weights, too, unless they are
  // settled: those come at once, as many slots as the ring has.
  __device__ void begin_to_load(const TileScheduler<config>& scheduler) {
    if (!scheduler.done()) begin_weights(scheduler.tile());
    wait_for_previous_grid();
  }

  // Fills the ring with the block's k-steps of one tile.
  __device__ void load(const Tile<config>& tile, RingPosition& position) {
    const int token = tile.first_token();
    for (int step = 0; step < place_.steps; ++step) {
      if (brought_ > 0) {
        --brought_;
      } else {
        barrier_wait(&ring_.empty[position.slot], position.phase ^ 1);
        bring_weights(tile, step, position.slot);
      }
      bring_x(token, step, position.slot);
      position.advance();
    }
  }

 private:
  // Weights that are settled come into the ring. Others begin their way to L2: what the kernel before still writes to
  // them reaches L2 as well.
  __device__ void begin_weights(const Tile<config>& first) {
    const int slots = min(place_.steps, Config::stages);
    if (geometry_.weights_settled) {
      for (int step = 0; step < slots; ++step) bring_weights(first, step, step);
      brought_ = slots;
    } else {
      for (int step = 0; step < slots; ++step) prefetch_weights(first, step);
    }
  }

  // Announces all bytes of the slot, those of x too.
  __device__ void bring_weights(const Tile<config>& tile, int step, int slot) {
    const std::uint64_t policy = ptx::evict_first_policy();
    const int k = place_.column_of(step);
    barrier_expect_bytes(&ring_.full[slot], (Config::slabs * geometry_.slab_rows + config.tokens) * config.tile_k() *
                                                Config::element_bytes);
    for_each_slab(tile, [&](int slab, int row_in_block, int repetition) {
#pragma unroll
      for (int box = 0; box < config.boxes(); ++box) {
        Operand<Element>* const to = slots_.weights[slot][box] + slab * config.slab * Config::box_k;
        load_tile_3d(&arguments_.slabs[slab], &ring_.full[slot], to, k + box * Config::box_k, row_in_block, repetition,
                     policy);
      }
    });
  }

  __device__ void bring_x(int token, int step, int slot) {
    const int k = place_.column_of(step);
#pragma unroll
    for (int box = 0; box < config.boxes(); ++box) {
      load_tile_2d(&arguments_.x, &ring_.full[slot], slots_.x[slot][box], k + box * Config::box_k, token);
    }
  }

  __device__ void prefetch_weights(const Tile<config>& tile, int step) const {
    for_each_slab(tile, [&](int slab, int row_in_block, int repetition) {
      for (int box = 0; box < config.boxes(); ++box) {
        prefetch_tile_3d(&arguments_.slabs[slab], place_.column_of(step) + box * Config::box_k, row_in_block,
                         repetition);
      }
    });
  }

  // slab(which, row in the layout's block, repetition of the layout's pattern)
  template <class Slab>
  __device__ void for_each_slab(const Tile<config>& tile, Slab slab) const {
    const int first_row = tile.first_row();
#pragma unroll
    for (int i = 0; i < Config::slabs; ++i) {
      const int row = first_row + i * slab_distance(config.product, geometry_.slab_rows);
      const int repetition = row / geometry_.block;
      slab(i, row - repetition * geometry_.block, repetition);
    }
  }

  const Arguments& arguments_;
  const Geometry& geometry_;
  const ClusterPlace& place_;
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
  int brought_ = 0;  // slots whose weights came before the kernel before had ended, and whose x has yet to follow
};

}  // namespace gatefold::cuda::sm90_decode
