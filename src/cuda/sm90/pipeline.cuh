#pragma once

#include "cuda/copy_engine/copies.cuh"
#include "cuda/sm90/config.hpp"
#include "cuda/sm90/ptx.cuh"

namespace gatefold::cuda::sm90 {

// Named barriers of a thread block. 0 is __syncthreads'. Each warpgroup has two: one for its own threads around its
// stores, and one on which it waits for its turn at the ring.
enum NamedBarrier : int { block_barrier = 0, first_store_barrier = 1, first_pingpong_barrier = 4 };

// By a whole warp, whose lanes all have `value`: so that the compiler knows, and keeps what follows from it in uniform
// registers.
template <class T>
__device__ T uniform(T value) {
  return __shfl_sync(0xffffffffU, value, 0);
}

// By a consumer warpgroup: what its one thread for copies does, each time the same. Of a thread that its number tells
// from the others ptxas would not know that all lanes of its warp ask for the same copy, and put a loop over the lanes
// around each, of some 120 cycles.
template <class Copies>
__device__ __forceinline__ void by_copying_thread(Copies copies) {
  if (thread_again() % 128 < 32) {
    if (elect_one()) copies();
  }
}

// Of a ping-pong schedule's warpgroups one may wait for its k-steps only when the one before has seen all of its own.
// The parity of an mbarrier tells a phase from the next, not from the one after that.
template <Config config>
struct PingPong {
  static __device__ void wait_turn(int warpgroup) {
    if constexpr (config.pingpong()) named_barrier_sync(first_pingpong_barrier + warpgroup, 256);
  }
  static __device__ void pass_on(int warpgroup) {
    if constexpr (config.pingpong()) named_barrier_arrive(first_pingpong_barrier + (warpgroup ^ 1), 256);
  }
};

// Where in the ring a producer or consumer stands. The phase flips at each turn.
template <int stages>
struct RingPosition {
  int slot = 0;
  std::uint32_t phase = 0;

  __device__ void advance() {
    if (++slot == stages) {
      slot = 0;
      phase ^= 1;
    }
  }
  __device__ RingPosition before() const {
    return slot == 0 ? RingPosition{stages - 1, phase ^ 1} : RingPosition{slot - 1, phase};
  }
  __device__ void advance(int steps) {
    slot += steps;
    phase ^= static_cast<std::uint32_t>(slot / stages) & 1U;
    slot %= stages;
  }
};

// The blocks of a cluster, numbered with the token side fastest, and who shares what with this one.
template <Config config>
struct ClusterPlace {
  std::uint32_t rank = config.cluster() == 1 ? 0 : uniform(cluster_rank());
  std::uint32_t m = rank % config.cluster_m;
  std::uint32_t n = rank / config.cluster_m % config.cluster_n;
  std::uint32_t k = rank / config.tiles_per_cluster();  // of those that divide the sums

  // Blocks of the same weight tile: n alike.
  __device__ std::uint16_t weight_sharers() const {
    return static_cast<std::uint16_t>(((1U << config.cluster_m) - 1) << (n * config.cluster_m));
  }
  // Blocks of the same token tile: m alike.
  __device__ std::uint16_t token_sharers() const {
    std::uint16_t mask = 0;
    for (int i = 0; i < config.cluster_n; ++i) mask |= static_cast<std::uint16_t>(1U << (i * config.cluster_m + m));
    return mask;
  }
  __device__ bool shares_with(std::uint32_t other) const {
    return other < config.cluster() && (other % config.cluster_m == m || other / config.cluster_m == n);
  }
};

// What the ring holds: in each slot 64 columns of a tile of tokens and of a tile of weight rows.
template <Config config, class Element>
struct alignas(1024) Slots {
  static constexpr int a_elements = config.tile_m * config.tile_k();
  static constexpr int b_elements = config.tile_n * config.tile_k();

  Element a[config.stages * a_elements];
  Element b[config.stages * b_elements];
};

// The barriers of the ring: full[s] counts the bytes that arrive in slot s and the producer warps that have requested
// theirs, empty[s] the consumer warps that are done with it, those of every block that this one sends to among them.
//
// Every producer warp is counted, since of a tile without columns one may have nothing to request. Uncounted, it
// would hold up nobody, miss a phase of empty[s] now and then, and wait for the one after the last.
template <Config config>
struct Ring {
  std::uint64_t full[config.stages];
  std::uint64_t empty[config.stages];

  static constexpr int consumer_warps = 4 * config.warpgroups_per_tile();
  static constexpr int sharing_blocks = config.cluster_m + config.cluster_n - 1;
  // Of a block: for the tokens, and for both strips of the weights or the one that it brings for two. Consumers that
  // request (feeder.cuh) miss no phase: empty[s] waits for their own warps.
  static constexpr int producer_warps = config.has_producers() ? 1 + 2 / config.cluster_m : 1;

  __device__ void init() {
    for (int s = 0; s < config.stages; ++s) {
      barrier_init(&full[s], producer_warps);
      barrier_init(&empty[s], consumer_warps * sharing_blocks);
    }
    fence_barrier_init();
  }

  // By a producer warp: bring(step, slot) for each k-step of a tile, when its slot is free.
  template <class Bring>
  __device__ void for_each_step(int k_steps, RingPosition<config.stages>& position, Bring bring) {
    const int steps = kept(k_steps);
    const std::uint32_t first = kept(shared_address(empty));
    for (int step = 0; step < steps; ++step) {
      const auto offset = position.slot * static_cast<std::uint32_t>(sizeof(empty[0]));
      barrier_wait(config.short_steps ? first + offset : shared_address(&empty[position.slot]), position.phase ^ 1);
      bring(step, position.slot);
      position.advance();
    }
  }

  // At the end, by a thread or warp that has been through all k-steps, until all blocks have released what was filled:
  // none will send an arrival any more.
  __device__ void wait_until_released(RingPosition<config.stages>& position) {
    for_each_step(config.stages, position, [](int /*step*/, int /*slot*/) {});
  }

  // By each consumer warp, all lanes together: lane l tells block l.
  __device__ void release(int slot, const ClusterPlace<config>& place, std::uint32_t lane) {
    if constexpr (config.tiles_per_cluster() == 1) {
      if (lane == 0) barrier_arrive(&empty[slot]);
    } else {
      if (place.shares_with(lane)) barrier_arrive_remote(&empty[slot], lane);
    }
  }

 private:
  // ptxas fetches constants and places in shared memory anew in each step, but not what a shuffle has handed over.
  template <class T>
  static __device__ T kept(T value) {
    return config.short_steps ? uniform(value) : value;
  }
};

}  // namespace gatefold::cuda::sm90
