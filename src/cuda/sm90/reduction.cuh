#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm90/pipeline.cuh"

namespace gatefold::cuda::sm90 {

// A reduction says how many blocks divide the sums of a tile, and adds up what each has. Its members:
//
//     blocks       that divide the sums; where it is 1, the kernel calls nothing of what follows
//     Storage      shared memory
//     init         by one thread of a block
//     complete     by the threads of a warpgroup, with its accumulators; false: another block stores them. `phase` is
//                  0 for the first tile that the warpgroup multiplies, and complete's from there on.
//     let_send_again
//                  by the same where complete was true, when it has stored them
//     wait_until_read
//                  by the same at the end: no block will send an arrival any more

// No block divides the sums of a tile.
struct NoReduction {
  static constexpr int blocks = 1;
  struct Storage {};
};

// Where a product has few tiles and long sums, two blocks of a cluster divide the sums of a tile: each multiplies half
// of the k-steps. Then block b completes and stores the rows of warpgroup b, for which the other sends what it has.
//
//                 block 0                              block 1
//     warpgroup 0 | k-steps 0 .. n-1 | add, store      | k-steps n .. 2n-1 | send |
//     warpgroup 1 | k-steps 0 .. n-1 | send |          | k-steps n .. 2n-1 | add, store
//
// Two terms: their sum does not hang on who comes first.
template <Config config>
class PairReduction {
 public:
  static constexpr int blocks = config.split_k;
  static constexpr int threads = 128;                // of a warpgroup
  static constexpr int vectors = config.tile_n / 8;  // of four accumulators, of each thread and slab

  struct alignas(16) Storage {
    float values[config.slabs()][vectors][threads][4];  // a warp's 16-byte pieces side by side: no bank twice
    std::uint64_t sent;                                 // counts the bytes that arrive
    std::uint64_t read;                                 // of what this block sent: the other's warps that have added it
  };

  static __device__ void init(Storage& mailbox) {
    barrier_init(&mailbox.sent, 1);
    barrier_init(&mailbox.read, threads / 32);
    fence_barrier_init();
  }

  // By the threads of a warpgroup with `slabs` slabs of products.
  template <class Accumulator>
  static __device__ bool complete(Storage& mailbox, const ClusterPlace<config>& place, int slabs, int thread,
                                  std::uint32_t& phase, Accumulator& tCrC) {
    const auto warpgroup = static_cast<std::uint32_t>(thread) / threads;
    if (place.rank == warpgroup) {
      receive(mailbox, slabs, thread % threads, phase, tCrC);
    } else {
      send(mailbox, warpgroup, slabs, thread % threads, phase, tCrC);
    }
    phase ^= 1;
    return place.rank == warpgroup;
  }

  // The release is a GPU-wide memory barrier, 0.3 to 0.5 us at a kernel's beginning and end: hence not before the tile
  // is stored.
  static __device__ void let_send_again(Storage& mailbox, const ClusterPlace<config>& place, int thread) {
    __syncwarp();  // all lanes have read
    if (thread % 32 == 0) barrier_release_remote(&mailbox.read, place.rank ^ 1U);
  }

  static __device__ void wait_until_read(Storage& mailbox, const ClusterPlace<config>& place, int thread,
                                         std::uint32_t phase) {
    if (place.rank != static_cast<std::uint32_t>(thread) / threads) barrier_wait(&mailbox.read, phase ^ 1);
  }

 private:
  template <class Accumulator>
  static __device__ void send(Storage& mailbox, std::uint32_t to, int slabs, int thread, std::uint32_t phase,
                              const Accumulator& tCrC) {
    barrier_wait_for_cluster(&mailbox.read, phase ^ 1);
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      if (slab >= slabs) break;
#pragma unroll
      for (int v = 0; v < vectors; ++v) {
        const auto value = [&](int i) { return tCrC(cute::make_coord(i % 2, i / 2, v), slab, 0); };
        store_remote(mailbox.values[slab][v][thread], &mailbox.sent, to, value(0), value(1), value(2), value(3));
      }
    }
  }

  template <class Accumulator>
  static __device__ void receive(Storage& mailbox, int slabs, int thread, std::uint32_t phase, Accumulator& tCrC) {
    constexpr int slab_bytes = sizeof(mailbox.values[0]);
    if (thread == 0) barrier_expect_bytes(&mailbox.sent, slabs * slab_bytes);
    barrier_wait_for_cluster(&mailbox.sent, phase);
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      if (slab >= slabs) break;
#pragma unroll
      for (int v = 0; v < vectors; ++v) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          tCrC(cute::make_coord(i % 2, i / 2, v), slab, 0) += mailbox.values[slab][v][thread][i];
        }
      }
    }
  }
};

}  // namespace gatefold::cuda::sm90
