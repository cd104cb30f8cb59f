#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm90_decode/pipeline.cuh"

namespace gatefold::cuda::sm90_decode {

// Each block of a cluster has of every sum of a tile the terms of its own k-steps. The blocks divide the tile's units
// among them (Division): what a block has of a unit it sends to the one that adds that unit up, in the order of the
// blocks, so that a sum does not hang on who comes first.
//
//     block 0   | multiply | send | receive, its units: add, store | release |
//     block 1   | multiply | send | receive, its units: add, store | release |
//
// A unit is what a warp has of eight tokens. Of its sums a thread holds four of each slab, in registers as in the
// mailbox: of token 2 (lane % 4) + i % 2 of the eight, and row lane / 4 + 8 (i / 2) of the warp's 16.
//
// A block that has all terms passes its sums through its own mailbox, too: the units are dealt out to the warps anew.
template <Config config>
class ClusterReduction {
 public:
  using UnitSums = float[Config::slabs][4];  // of a thread

  struct Storage {
    alignas(16) float mailbox[config.mailbox_units()][Config::slabs][32][4];
  };

  struct Barriers {
    std::uint64_t sent;  // counts the bytes that arrive
    std::uint64_t read;  // the consumer warps of all blocks that have added up what this block sent
  };

  // By one thread of a block.
  static __device__ void init(Barriers& barriers, int split) {
    barrier_init(&barriers.sent, 1);
    barrier_init(&barriers.read, Config::consumer_warps * split);
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

    __device__ int count() const { return count_; }

    // function(unit, sums) for each of them that is this warp's.
    template <class Function>
    __device__ void for_each(Function function) const {
#pragma unroll 1
      for (int i = warp(); i < count_; i += Config::consumer_warps) {
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

  // Each unit's sums to the block that adds them up, whose consumers have read what they had before.
  template <class Accumulator>
  __device__ void send(std::uint32_t phase, const Accumulator& tCrC) {
    if (geometry_.split == 1) return keep(tCrC);
    const Division d = division();
    barrier_wait_for_cluster(&barriers_.read, phase ^ 1);
#pragma unroll
    for (int group = 0; group < config.groups(); ++group) {
      const int unit = warp() * config.groups() + group;
      const int to = d.block_of(unit);
      const int at = place_.rank * d.most() + unit - d.first(to);
#pragma unroll
      for (int slab = 0; slab < Config::slabs; ++slab) {
        const auto value = [&](int i) { return tCrC(cute::make_coord(i % 2, i / 2, group), slab, 0); };
        store_remote(storage_.mailbox[at][slab][lane()], &barriers_.sent, static_cast<std::uint32_t>(to), value(0),
                     value(1), value(2), value(3));
      }
    }
  }

  // Until all blocks' sums of this block's units have come.
  __device__ Units receive(std::uint32_t phase) {
    const Units units(storage_, geometry_, division(), place_.rank);
    if (geometry_.split == 1) {
      consumers_sync();
    } else {
      if (threadIdx.x == 0) {
        barrier_expect_bytes(&barriers_.sent, geometry_.split * units.count() * Config::unit_bytes);
      }
      barrier_wait_for_cluster(&barriers_.sent, phase);
    }
    return units;
  }

  // When they have been added up: the others may send again.
  __device__ void release() {
    if (geometry_.split == 1) {
      consumers_sync();
    } else {
      __syncwarp();  // all lanes have read
      if (lane() < geometry_.split) barrier_release_remote(&barriers_.read, static_cast<std::uint32_t>(lane()));
    }
  }

 private:
  __device__ Division division() const { return {config.units(), geometry_.split}; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // Where the block has all terms: the warps have come together at the tile before's end.
  template <class Accumulator>
  __device__ void keep(const Accumulator& tCrC) {
#pragma unroll
    for (int group = 0; group < config.groups(); ++group) {
#pragma unroll
      for (int slab = 0; slab < Config::slabs; ++slab) {
        const auto value = [&](int i) { return tCrC(cute::make_coord(i % 2, i / 2, group), slab, 0); };
        *reinterpret_cast<float4*>(storage_.mailbox[warp() * config.groups() + group][slab][lane()]) = {
            value(0), value(1), value(2), value(3)};
      }
    }
  }

  static __device__ void consumers_sync() {
    delay();
    asm volatile("bar.sync 1, %0;" ::"n"(32 * Config::consumer_warps) : "memory");
    delay();
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
