#pragma once

#include <cute/tensor.hpp>

#include "cuda/copy_engine/copies.cuh"
#include "cuda/copy_engine/delay.cuh"
#include "cuda/sm90_decode/pipeline.cuh"

// gate_up and gemm for few tokens on 9.0, bound by reading the weights once.
//
// A cluster of `split` blocks takes a tile; each block multiplies every part of the sums' terms that is its own, and
// then adds up and stores a part of the tile's outputs, in the order of the blocks. One lane requests weights and
// x of the copy engine as far ahead as the ring has slots, 128 KiB of weights, through the tiles; a warpgroup
// multiplies, and eight warps finish a tile while the next one is multiplied.
//
//     block 0   producer   | k 0, 2, .. of tile 0 | of tile 1 ...
//               consumers  |   wgmma k 0, 2, .. | send |   wgmma k 0, 2, .. of tile 1 | send |
//               finishers                              | add, act, store |                   | add, act, store |
//     block 1   consumers  |   wgmma k 1, 3, .. | send |   ...
//
// Barriers, by block:
//     full[s]    1 arrival and a slot's bytes   the producer announces, the copy engine brings
//     empty[s]   4                              each consumer warp, when it has multiplied the slot
//     room       8 split                        the finisher warps of all blocks, when they have read what was sent
//                256, undivided                 the finishers
//     sent       1 arrival and the sums' bytes  a consumer announces; the consumers of all blocks send
//                128, undivided                 the consumers, when they have written
namespace gatefold::cuda::sm90_decode {

// Shape: the policies that it is made of (shape.cuh), whose arguments lie side by side.
template <class Shape>
struct Arguments : DelaySeed {
  typename Shape::Loads::Arguments loads;
  typename Shape::Epilogue::Arguments epilogue;
  Geometry geometry;  // which all policies read
};

template <class Shape>
struct SharedStorage {
  Slots<Shape::config, typename Shape::Element> slots;
  typename Shape::Reduction::Storage reduction;
  Ring<Shape::config> ring;
  typename Shape::Reduction::Barriers reduction_barriers;

  // By one thread.
  __device__ void init(int split) {
    ring.init();
    Shape::Reduction::init(reduction_barriers, split);
    fence_barrier_init();
  }
};

// What the threads of a block do, each role a function.
template <class Shape>
class Block {
 public:
  static constexpr Config config = Shape::config;
  using Loads = typename Shape::Loads;
  using Mainloop = typename Shape::Mainloop;
  using Reduction = typename Shape::Reduction;
  using Epilogue = typename Shape::Epilogue;

  __device__ Block(const Arguments<Shape>& arguments, SharedStorage<Shape>& storage)
      : arguments_(arguments),
        geometry_(arguments.geometry),
        storage_(storage),
        place_(geometry_, config.tile_k()),
        scheduler_(geometry_),
        loads_(arguments.loads, geometry_, place_, storage.slots, storage.ring) {}

  // By one thread.
  __device__ void begin_to_produce() {
    storage_.init(geometry_.split);
    loads_.begin_weights(scheduler_);
  }

  // By all threads, until all blocks of the cluster have initialised their barriers.
  __device__ void meet_peers() const {
    if (geometry_.split > 1) {
      cluster_meet();
    } else {
      __syncthreads();
    }
  }

  __device__ void produce() {
    loads_.begin_to_load();
    RingPosition position;
    for (; !scheduler_.done(); scheduler_.advance()) loads_.load(scheduler_.tile(), position);
  }

  // By a warpgroup.
  __device__ void consume() {
    Reduction reduction(storage_.reduction, storage_.reduction_barriers, geometry_, place_);
    RingPosition position;
    std::uint32_t phase = 0;  // of the reduction's barriers: one each tile
    for (; !scheduler_.done(); scheduler_.advance()) {
      auto tCrC = cute::partition_fragment_C(
          typename Mainloop::TiledMma{},
          cute::Shape<cute::Int<config.rows()>, cute::Int<Mainloop::columns>>{});  // ((2, 2, groups), slabs, 1)
      Mainloop::multiply(storage_.slots, storage_.ring, place_, position, tCrC);
      reduction.send(phase, tCrC);
      phase ^= 1;
    }
  }

  // By the warps that add up and store a tile while the next one is multiplied.
  __device__ void finish() {
    Loads::begin_to_store();
    Reduction reduction(storage_.reduction, storage_.reduction_barriers, geometry_, place_);
    std::uint32_t phase = 0;
    for (; !scheduler_.done(); scheduler_.advance()) {
      reduction.make_room();
      const auto units = reduction.receive(phase);
      Epilogue::store(arguments_.epilogue, geometry_, scheduler_.tile(), units);
      phase ^= 1;
    }
  }

 private:
  const Arguments<Shape>& arguments_;
  const Geometry& geometry_;
  SharedStorage<Shape>& storage_;
  ClusterPlace place_;
  typename Shape::Scheduler scheduler_;
  Loads loads_;
};

template <class Shape>
__global__ __launch_bounds__(Config::threads, 1) void kernel(const __grid_constant__ Arguments<Shape> arguments) {
  using Storage = SharedStorage<Shape>;
  static_assert(sizeof(Storage) <= Shape::config.shared_bytes());
  // The swizzle repeats every 1024 bytes of the shared window, so the ring must begin at a multiple of that.
  extern __shared__ __align__(1024) std::byte raw[];
  if (shared_address(raw) % 1024 != 0) __trap();
  auto& storage = *reinterpret_cast<Storage*>(raw);

  begin_delays(arguments);
  Block<Shape> block(arguments, storage);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool produces = warp == Config::threads / 32 - 1;  // by its elected lane
  if (produces) {
    if (elect_one()) block.begin_to_produce();
  }
  __syncwarp();
  block.meet_peers();
  if (warp < Config::consumer_warps) {
    block.consume();
  } else if (warp < Config::consumer_warps + Config::finisher_warps) {
    block.finish();
  } else if (produces) {
    if (elect_one()) block.produce();
  }
  // Nothing is on its way to a block that has ended: its consumers have waited for the last arrivals of all finishers,
  // and its finishers for the last sums.
}

}  // namespace gatefold::cuda::sm90_decode
