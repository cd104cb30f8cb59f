#pragma once

#include <cute/tensor.hpp>

#include "cuda/copy_engine/delay.cuh"
#include "cuda/sm90/loader.cuh"
#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// gate_up, gemm and gemm_gated for sm_90a. One thread block per SM walks the tiles of its share: producer warps keep
// a ring of k-steps filled through the copy engine, the consumer warpgroups multiply out of it and store.
//
//   producers  | load k0 k1 k2 ... of tile 0 | tile 1 ...            as far ahead as the ring has slots
//   warpgroup 0|   wgmma k0 k1 k2 ...   | act, product, store | wgmma ...
//   warpgroup 1|     wgmma k0 k1 k2 ...   | act, product, store | wgmma ...
//
// The warpgroups share nothing but the ring: while one is in its epilogue, the other has the tensor cores to itself.
//
// Shape: the policies that it is made of (shape.cuh), whose arguments lie side by side.
template <class Shape>
struct Arguments : DelaySeed {
  typename Shape::Loads::Arguments loads;
  CUtensorMap out;    // [T, F]
  Geometry geometry;  // which all policies read
  typename Shape::Epilogue::Arguments epilogue;
};

template <class Shape>
struct SharedStorage {
  Slots<Shape::config, typename Shape::Element> slots;
  typename Shape::Epilogue::Storage epilogue;
  Ring<Shape::config> ring;
  typename Shape::Reduction::Storage reduction;
  typename Shape::Loads::Storage loads;
  typename Shape::Epilogue::Inputs inputs;
};

// What the threads of a block do, each role a function. What multiplies is inlined, whatever its length: across calls
// ptxas puts a wait behind every wgmma, and accumulators that a function is given lie in memory.
template <class Shape>
class Block {
 public:
  static constexpr Config config = Shape::config;
  using Element = typename Shape::Element;
  using Loads = typename Shape::Loads;
  using Mainloop = typename Shape::Mainloop;
  using Reduction = typename Shape::Reduction;
  using Epilogue = typename Shape::Epilogue;
  using Storage = SharedStorage<Shape>;

  // A block must outlive what its peers send it: copies, which its consumers have waited for, and arrivals, the last of
  // which it waits for. Where an epilogue has inputs the blocks of a cluster end together instead: without that
  // ptxas 13.0 spills a register of 128x192's.
  static constexpr bool syncs_at_end = config.cluster() > 1 && Epilogue::has_inputs;
  static constexpr bool waits_at_end = config.cluster() > 1 && !syncs_at_end;

  __device__ Block(const Arguments<Shape>& arguments, const ClusterPlace<config>& place, Storage& storage)
      : arguments_(arguments),
        geometry_(arguments.geometry),
        place_(place),
        storage_(storage),
        scheduler_(geometry_, place) {}

  // By one thread.
  __device__ void init() {
    storage_.ring.init();
    if constexpr (Reduction::blocks > 1) Reduction::init(storage_.reduction);
    Epilogue::init(arguments_.epilogue, storage_.inputs);
    Loader<config, Element>::prefetch_descriptors(arguments_.loads, geometry_);
    if constexpr (Epilogue::store_rows > 0) prefetch_descriptor(&arguments_.out);
  }

  // By the warps that request weights: those of their first tile begin their way to L2.
  __device__ void prefetch() const {
    const int warp = uniform(static_cast<int>(threadIdx.x) / 32) - first_requesting_warp;
    if (warp < 0 || warp >= loads_per_step || scheduler_.done()) return;
    const Loader<config, Element> loader = loader_of(warp);
    if (!loader.brings_something()) return;
    if (elect_one()) {
      if constexpr (Loads::prefetches) loader.prefetch_weights(loader.boxes_of(scheduler_.tile()));
    }
    __syncwarp();
  }

  __device__ void produce() {
    const int warp = uniform(static_cast<int>(threadIdx.x) / 32) - first_requesting_warp;
    const Loader<config, Element> loader = loader_of(warp);
    const Loads producer(loader, storage_.slots, storage_.ring, storage_.loads);
    if (warp < loads_per_step && loader.brings_something()) {
      producer.begin();
      for (; !scheduler_.done(); scheduler_.advance()) {
        producer.load(scheduler_.tile(), geometry_.k_steps, position_);
      }
      if (waits_at_end && loader.brings_tokens()) storage_.ring.wait_until_released(position_);
    }
    __syncwarp();
  }

  __device__ __forceinline__ void consume() {
    const int warpgroup = uniform_warpgroup();
    // In ping-pong, a warpgroup takes every warpgroups-th tile and steps over the others' part of the ring.
    constexpr int turns = config.pingpong() ? config.warpgroups : 1;
    const int turn = config.pingpong() ? warpgroup : 0;
    if (turn == 1) PingPong<config>::pass_on(turn);  // warpgroup 0 begins
    scheduler_.advance(turn);
    position_.advance(turn * geometry_.k_steps);
    for (; !scheduler_.done(); scheduler_.advance(turns), position_.advance((turns - 1) * geometry_.k_steps)) {
      PingPong<config>::wait_turn(turn);
      compute_tile(config.pingpong() ? 0 : warpgroup, turn, [](const auto& /*where*/, int /*step*/) {});
    }
    by_copying_thread([] { store_wait_read(); });
    if constexpr (Reduction::blocks > 1) {
      Reduction::wait_until_read(storage_.reduction, place_, thread_again(), reduction_phase_);
    }
  }

  // Both, in a block without producers.
  __device__ __forceinline__ void feed_and_consume() {
    const Loader<config, Element> loader = loader_of(0);
    const Loads feeder(loader, storage_.slots, storage_.ring, storage_.loads);
    feeder.by_loading_threads([&] {
      if (!scheduler_.done()) feeder.begin(scheduler_.tile());
    });
    __syncwarp();
    for (; !scheduler_.done(); scheduler_.advance()) {
      feeder.by_loading_threads([&] { feeder.enter(scheduler_); });
      __syncwarp();
      compute_tile(uniform_warpgroup(), 0, [&](const auto& where, int step) {
        feeder.by_loading_threads([&] { feeder.refill(where.slot, where.phase, step, geometry_.k_steps); });
        __syncwarp();
      });
    }
    by_copying_thread([&] {
      store_wait_read();
      if (waits_at_end) storage_.ring.wait_until_released(position_);
    });
  }

 private:
  static constexpr int first_requesting_warp = config.has_producers() ? 4 * config.warpgroups : 0;

  // Of warp `warp` of the three that request the operands.
  __device__ Loader<config, Element> loader_of(int warp) const {
    return {static_cast<Load>(warp), arguments_.loads, geometry_, place_};
  }

  static __device__ int uniform_warpgroup() { return uniform(thread_again() / 128); }

  // By warpgroup `warpgroup` of those that share the tile.
  template <class Released>
  __device__ __forceinline__ void compute_tile(int warpgroup, int turn, Released refill) {
    auto tCrC = cute::partition_fragment_C(
        typename Mainloop::TiledMma{},
        cute::Shape<cute::Int<Mainloop::rows>, cute::Int<Mainloop::columns>>{});  // ((2, 2, columns / 8), slabs, 1)
    const int slabs = scheduler_.tile().template slabs_of<config>(warpgroup);
    const auto released = with_inputs(slabs, refill);
    if (slabs == config.slabs()) {
      Mainloop::template multiply<config.slabs()>(geometry_, storage_.slots, storage_.ring, place_, position_,
                                                  warpgroup, tCrC, released);
    } else if (slabs > 0) {
      Mainloop::template multiply<1>(geometry_, storage_.slots, storage_.ring, place_, position_, warpgroup, tCrC,
                                     released);
    } else {
      Mainloop::skip_tile(geometry_, storage_.ring, place_, position_, refill);
    }
    PingPong<config>::pass_on(turn);
    // Anew, so that no register holds them beside the accumulators.
    const Tile tile = scheduler_.tile_again();
    const int thread = thread_again();
    const int stored = tile.template slabs_of<config>(config.pingpong() ? 0 : thread / 128);
    if (stored == 0) return;
    if constexpr (Reduction::blocks > 1) {
      if (!Reduction::complete(storage_.reduction, place_, stored, thread, reduction_phase_, tCrC)) return;
    }
    Epilogue::add_biases(arguments_.epilogue, tile, thread, tCrC);
    Epilogue::store(arguments_.out, arguments_.epilogue, tile, stored, storage_.epilogue, storage_.inputs, thread,
                    tCrC);
    if constexpr (Reduction::blocks > 1) Reduction::let_send_again(storage_.reduction, place_, thread_again());
  }

  // What a warpgroup does whenever it has released a slot. After a tile's first k-step the epilogue's own inputs are
  // requested, too: not before, since the stores of the tile before must leave their place.
  template <class Released>
  __device__ auto with_inputs(int slabs, Released refill) {
    if constexpr (!Epilogue::has_inputs) {
      return refill;
    } else {
      return [this, slabs, refill](const auto& where, int step) {
        refill(where, step);
        if (step > 0) return;
        const int thread = thread_again();
        by_copying_thread([&] {
          Epilogue::prefetch(arguments_.epilogue, scheduler_.tile_again(), slabs, storage_.epilogue, storage_.inputs,
                             thread);
        });
        __syncwarp();
      };
    }
  }

  const Arguments<Shape>& arguments_;
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
  Storage& storage_;
  typename Shape::Scheduler scheduler_;
  RingPosition<config.stages> position_;
  std::uint32_t reduction_phase_ = 0;
};

template <class Shape>
__global__ __launch_bounds__(Shape::config.threads(),
                             1) void kernel(const __grid_constant__ Arguments<Shape> arguments) {
  constexpr Config config = Shape::config;
  static_assert(config.has_producers() ||
                (!config.pingpong() && config.swap_ab == config.alternating && config.cluster_m == 1));
  static_assert(!config.alternating || (config.swap_ab && config.product == Product::gate_up));
  static_assert(!config.tokens_divided ||
                ((config.alternating || config.product == Product::parts) && config.swap_ab && !config.pingpong()));
  static_assert(config.split_k == 1 || (config.split_k == 2 && config.warpgroups == 2 && config.has_producers() &&
                                        !config.pingpong() && !config.swap_ab && config.tiles_per_cluster() == 1));
  static_assert(!config.short_steps || (config.has_producers() && config.subtiles() == 1));
  static_assert(!config.has_producers() ||
                128 * (config.producer_registers() + config.warpgroups * config.consumer_registers()) <=
                    config.launch_registers());
  using Storage = typename Block<Shape>::Storage;
  static_assert(sizeof(Storage) <= config.shared_bytes());
  // The swizzle repeats every 1024 bytes of the shared window, so the ring must begin at a multiple of that.
  extern __shared__ __align__(1024) std::byte raw[];
  if (shared_address(raw) % 1024 != 0) __trap();
  auto& storage = *reinterpret_cast<Storage*>(raw);

  begin_delays(arguments);
  const ClusterPlace<config> place;
  Block<Shape> block(arguments, place, storage);
  if (threadIdx.x == 0) block.init();
  __syncwarp();
  cluster_arrive();
  block.prefetch();
  cluster_wait();
  if constexpr (Shape::Epilogue::has_inputs) __syncthreads();  // init's memory that is no barrier

  if constexpr (!Shape::Loads::holds_back) ptx::launch_next_grid();
  if constexpr (Shape::Loads::feed == Feed::consumers) {
    block.feed_and_consume();
  } else if (threadIdx.x >= 128 * config.warpgroups) {
    register_limit_lower<config.producer_registers()>();
    block.produce();
  } else {
    register_limit_raise<config.consumer_registers()>();
    block.consume();
  }
  if constexpr (Block<Shape>::syncs_at_end) {
    __syncwarp();  // elected lanes have waited alone
    cluster_sync();
  }
}

}  // namespace gatefold::cuda::sm90
