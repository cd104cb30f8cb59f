#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm90_decode/pipeline.cuh"

namespace gatefold::cuda::sm90_decode {

// Each block of a cluster has of every sum of a tile the terms of its own k-steps. The blocks divide the tile's units
// among them (Division): what a block has of a unit it sends to the one that adds that unit up, in the order of the
// blocks, so that a sum does not hang on who comes first.
//
//     block 0   consumers | multiply      | send | multiply the next tile                       | send |
//               finishers | make room |          | receive, its units: add, store | make room |        | receive ...
//     block 1   the same
//
// A unit is 16 rows of both slabs and eight tokens. Of its sums a lane holds four of each slab, in registers as in the
// mailbox: of token 2 (lane % 4) + i % 2 of the eight, and row lane / 4 + 8 (i / 2) of the 16.
//
// A block that has all terms passes its sums through its own mailbox, too. The mailbox holds one tile's: the consumers
// send the next one's when all finishers that they send to have read it.
template <Config config>
class ClusterReduction {
 public:
  using UnitSums = float[Config::slabs][4];  // of a thread

  struct Storage {
    alignas(16) float mailbox[config.mailbox_units()][Config::slabs][32][4];
  };

  struct Barriers {
    // The finisher warps of all blocks, when they have read what this block sent; of one block alone their threads.
    std::uint64_t room;
    // A consumer of this block, which announces the bytes that arrive; of one block alone all consumers. So the
    // finishers of a block that is sent nothing, too, don't run ahead of its consumers, and into the next phase of
    // `room`.
    std::uint64_t sent;
  };

  // By one thread of a block. (Where threads arrive one by one it is because racecheck doesn't see what the others of a
  // warp have done before one that arrives for them.)
  static __device__ void init(Barriers& barriers, int split) {
    barrier_init(&barriers.room, split == 1 ? 32 * Config::finisher_warps : Config::finisher_warps * split);
    barrier_init(&barriers.sent, split == 1 ? 32 * Config::consumer_warps : 1);
  }

  // The units that a block adds up of a tile.
  class Units {
   public:
    __device__ Units(const Storage& storage, const Geometry& geometry, const Division& division, int rank)
        : storage_(storage),
          geometry_(geometry),
          division_(division),
          first_(division.first(rank)),
          count_(division.count(rank)) {}

    // function(unit, sums) for each of them that is this warp's.
    template <class Function>
    __device__ void for_each(Function function) const {
#pragma unroll 1
      for (int i = finisher(); i < count_; i += Config::finisher_warps) {
        UnitSums sums = {};
        for (int from = 0; from < geometry_.split; ++from) add(storage_.mailbox[from * division_.most() + i], sums);
        function(first_ + i, sums);
      }
    }

   private:
    const Storage& storage_;
    const Geometry& geometry_;
    Division division_;
    int first_;
    int count_;
  };

  __device__ ClusterReduction(Storage& storage, Barriers& barriers, const Geometry& geometry, const ClusterPlace& place)
      : storage_(storage), barriers_(barriers), geometry_(geometry), place_(place) {}

  // By the consumers: each unit's sums to the block that adds them up, where there is room.
  template <class Accumulator>
  __device__ void send(std::uint32_t phase, const Accumulator& tCrC) {
    if (geometry_.split == 1) return keep(phase, tCrC);
    const Division d = division();
    barrier_wait_for_cluster(&barriers_.room, phase);
    if (threadIdx.x == 0) {
      barrier_expect_bytes(&barriers_.sent, geometry_.split * d.count(place_.rank) * Config::unit_bytes);
    }
    for_each_sum(tCrC, [&](int unit, int slab, const float4& sums) {
      const int to = d.block_of(unit);
      const int at = place_.rank * d.most() + unit - d.first(to);
      store_remote(storage_.mailbox[at][slab][lane()], &barriers_.sent, static_cast<std::uint32_t>(to), sums.x, sums.y,
                   sums.z, sums.w);
    });
  }

  // By the finishers, before each tile: they have read what was sent of the one before.
  __device__ void make_room() {
    if (geometry_.split == 1) {
      barrier_arrive(&barriers_.room);
    } else {
      __syncwarp();  // all lanes have read
      if (lane() < geometry_.split) barrier_release_remote(&barriers_.room, static_cast<std::uint32_t>(lane()));
    }
  }

  // By the finishers, until all blocks' sums of this block's units have come.
  __device__ Units receive(std::uint32_t phase) {
    if (geometry_.split == 1) {
      barrier_wait(&barriers_.sent, phase);
    } else {
      barrier_wait_for_cluster(&barriers_.sent, phase);
    }
    return {storage_, geometry_, division(), place_.rank};
  }

 private:
  __device__ Division division() const { return {config.units(), geometry_.split}; }

  // Of the sums that a warp holds: a wgmma of 64 rows is a slab of as many, or both of 32, of which each has two warps.
  static __device__ int unit_of(int group) { return warp() % config.slab_warps() * config.groups() + group; }
  static __device__ int slab_of(int m) { return config.wgmmas() == 2 ? m : warp() / config.slab_warps(); }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ int finisher() { return warp() - Config::consumer_warps; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // Where the block has all terms.
  template <class Accumulator>
  __device__ void keep(std::uint32_t phase, const Accumulator& tCrC) {
    barrier_wait(&barriers_.room, phase);
    for_each_sum(tCrC, [&](int unit, int slab, const float4& sums) {
      *reinterpret_cast<float4*>(storage_.mailbox[unit][slab][lane()]) = sums;
    });
    barrier_arrive(&barriers_.sent);
  }

  // function(unit, slab, four sums) for all that this thread holds.
  template <class Accumulator, class Function>
  static __device__ void for_each_sum(const Accumulator& tCrC, Function function) {
#pragma unroll
    for (int group = 0; group < config.groups(); ++group) {
#pragma unroll
      for (int m = 0; m < config.wgmmas(); ++m) {
        const auto sum = [&](int i) { return tCrC(cute::make_coord(i % 2, i / 2, group), m, 0); };
        function(unit_of(group), slab_of(m), float4{sum(0), sum(1), sum(2), sum(3)});
      }
    }
  }

  static __device__ void add(const float (&unit)[Config::slabs][32][4], UnitSums& sums) {
#pragma unroll
    for (int slab = 0; slab < Config::slabs; ++slab) {
      const float4 v = *reinterpret_cast<const float4*>(unit[slab][lane()]);
      sums[slab][0] += v.x;
      sums[slab][1] += v.y;
      sums[slab][2] += v.z;
      sums[slab][3] += v.w;
    }
  }

  Storage& storage_;
  Barriers& barriers_;
  const Geometry& geometry_;
  const ClusterPlace& place_;
};

}  // namespace gatefold::cuda::sm90_decode
