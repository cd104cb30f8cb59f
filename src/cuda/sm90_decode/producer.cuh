#pragma once

#include "cuda/copy_engine/copies.cuh"
#include "cuda/sm90_decode/pipeline.cuh"
#include "cuda/sm90_decode/scheduler.cuh"

namespace gatefold::cuda::sm90_decode {

// Rows as they are requested of the copy engine: a run of each, as many lines of 64 columns as a step has, at once; or
// line by line, where the last step ends within a line.
struct RowMaps {
  CUtensorMap runs;   // encode_runs
  CUtensorMap lines;  // encode_lines
};

// Loads say who requests the operands of the copy engine, and when. That the kernel before has ended is waited for here
// and nowhere else, in every thread before the first that it reads or writes of what that kernel may have to do with.
//
// One elected lane requests: it runs ahead of the consumers, through all slots of the ring and on through the tiles.
//
// Weights of a slab that has fewer than 64 rows leave the rest of its place in the ring as it was: the sums of those
// rows are nobody's.
template <Config config, class Element>
class Producer {
 public:
  struct Arguments {
    RowMaps x;                           // [T, D], boxes of the config's tokens
    RowMaps weights[config.requests()];  // boxes of slab_rows, gate's and up's; or a single weight's, of both slabs
  };

  __device__ Producer(const Arguments& arguments, const Geometry& geometry, const ClusterPlace& place,
                      Slots<config, Element>& slots, Ring<config>& ring)
      : arguments_(arguments), geometry_(geometry), place_(place), slots_(slots), ring_(ring) {}

  // By each thread that stores, before it does: the kernel before may still read what it stores to, and write the
  // biases.
  static __device__ void begin_to_store() { wait_for_previous_grid(); }

  // By the producer, before anything else: the first tile's weights, as many slots as the ring has, where they are
  // settled. Others begin their way to L2: what the kernel before still writes to them reaches L2 as well.
  __device__ void begin_weights(const TileScheduler<config>& scheduler) {
    if (scheduler.done()) return;
    const int slots = min(place_.steps, Config::stages);
    for (int step = 0; step < slots; ++step) {
      if (geometry_.weights_settled) {
        bring_weights(scheduler.tile(), step, step);
      } else {
        prefetch_weights(scheduler.tile(), step);
      }
    }
    if (geometry_.weights_settled) brought_ = slots;
  }

  // By the producer, before it loads: the kernel before may still write x, and weights that are not settled. The next
  // kernel may begin now, and does where a block of this one leaves room for its own: with w_down on its way meanwhile
  // an mlp of Llama 8B with 16 tokens takes 84.9 us in place of 86.9 (docs/kernels/decode_log.md).
  __device__ void begin_to_load() {
    wait_for_previous_grid();
    ptx::launch_next_grid();
  }

  // Fills the ring with the block's k-steps of one tile.
  __device__ void load(const Tile<config>& tile, RingPosition& position) {
    for (int step = 0; step < place_.steps; ++step) {
      if (brought_ > 0) {
        --brought_;
      } else {
        barrier_wait(&ring_.empty[position.slot], position.phase ^ 1);
        bring_weights(tile, step, position.slot);
      }
      bring_x(tile.first_token(), step, position.slot);
      position.advance();
    }
  }

 private:
  // Announces all bytes of the slot, those of x too.
  __device__ void bring_weights(const Tile<config>& tile, int step, int slot) {
    const std::uint64_t policy = ptx::evict_first_policy();
    const int rows = config.request_rows(geometry_.slab_rows);
    barrier_expect_bytes(&ring_.full[slot], (Config::slabs * geometry_.slab_rows + config.tokens) * config.tile_k() *
                                                Config::element_bytes);
    for_each_request(tile, [&](const RowMaps& maps, int request, int row, int repetition) {
      Operand<Element>* const to = slots_.weights[slot] + request * config.boxes() * rows * Config::box_k;
      for_each_box(
          step, [&](int line) { load_tile_4d(&maps.runs, &ring_.full[slot], to, 0, row, repetition, line, policy); },
          [&](int box, int k) {
            load_tile_3d(&maps.lines, &ring_.full[slot], to + box * rows * Config::box_k, k, row, repetition, policy);
          });
    });
  }

  __device__ void bring_x(int token, int step, int slot) {
    const RowMaps& maps = arguments_.x;
    for_each_box(
        step, [&](int line) { load_tile_4d(&maps.runs, &ring_.full[slot], slots_.x[slot][0], 0, token, 0, line); },
        [&](int box, int k) { load_tile_3d(&maps.lines, &ring_.full[slot], slots_.x[slot][box], k, token, 0); });
  }

  __device__ void prefetch_weights(const Tile<config>& tile, int step) const {
    for_each_request(tile, [&](const RowMaps& maps, int /*request*/, int row, int repetition) {
      for_each_box(
          step, [&](int line) { prefetch_tile_4d(&maps.runs, 0, row, repetition, line); },
          [&](int /*box*/, int k) { prefetch_tile_3d(&maps.lines, k, row, repetition); });
    });
  }

  // function(its maps, its number, row in the layout's block, repetition of the layout's pattern)
  template <class Function>
  __device__ void for_each_request(const Tile<config>& tile, Function function) const {
    const int repetition = tile.first_row() / geometry_.block;
    const int row = tile.first_row() - repetition * geometry_.block;
#pragma unroll
    for (int request = 0; request < config.requests(); ++request) {
      function(arguments_.weights[request], request, row, repetition);
    }
  }

  // run(first line) of a step that is whole lines; else line(box, column) for each of its boxes.
  template <class Run, class Line>
  __device__ void for_each_box(int step, Run run, Line line) const {
    const int k = place_.column_of(step);
    if (k < geometry_.run_steps * config.tile_k()) return run(k / Config::box_k);
#pragma unroll
    for (int box = 0; box < config.boxes(); ++box) line(box, k + box * Config::box_k);
  }

  const Arguments& arguments_;
  const Geometry& geometry_;
  ClusterPlace place_;  // a copy: a reference to what the block owns, as this, keeps both in local memory
  Slots<config, Element>& slots_;
  Ring<config>& ring_;
  int brought_ = 0;  // slots whose weights came before the kernel before had ended, and whose x has yet to follow
};

}  // namespace gatefold::cuda::sm90_decode
