#pragma once

#include "cuda/sm90/epilogue.cuh"
#include "cuda/sm90/loader.cuh"
#include "cuda/sm90/mainloop.cuh"
#include "cuda/sm90/transposed_epilogue.cuh"

namespace gatefold::cuda::sm90 {

// gate_up and gemm for sm_90a. One thread block per SM walks the tiles of its share: producer threads keep a ring of
// k-steps filled through the copy engine, the consumer warpgroups multiply out of it and store.
//
//   producers  | load k0 k1 k2 ... of tile 0 | tile 1 ...            as far ahead as the ring has slots
//   warpgroup 0|   wgmma k0 k1 k2 ...   | act, product, store | wgmma ...
//   warpgroup 1|     wgmma k0 k1 k2 ...   | act, product, store | wgmma ...
//
// The warpgroups share nothing but the ring: while one is in its epilogue, the other has the tensor cores to itself.
struct Arguments : DelaySeed {
  CUtensorMap x;         // [T, D], boxes of tile_m / cluster_n rows x 64
  HalfMaps first_half;   // gate's rows; of a plain product the weight's
  HalfMaps second_half;  // up's rows; likewise
  CUtensorMap out;       // [T, F]
  Geometry geometry;
  Combine combine;
};

// Of accumulators whose rows are tokens, or weight rows.
template <Config config, class Element>
using EpilogueOf =
    std::conditional_t<config.transposed, TransposedEpilogue<config, Element>, Epilogue<config, Element>>;

template <Config config, class Element>
struct SharedStorage {
  Slots<config, Element> slots;
  typename EpilogueOf<config, Element>::Storage epilogue;
  Ring<config> ring;
};

// Shape: a type with `static constexpr Config config` and `using Element`. (nvcc 13.0 cannot name a __global__ template
// whose argument is a Config itself.)
template <class Shape>
__global__ __launch_bounds__(Shape::config.threads(), 1) void kernel(const __grid_constant__ Arguments arguments) {
  constexpr Config config = Shape::config;
  using Element = typename Shape::Element;
  using Mainloop = sm90::Mainloop<config, Element>;
  using Epilogue = EpilogueOf<config, Element>;
  using Storage = SharedStorage<config, Element>;
  static_assert(sizeof(Storage) <= config.shared_bytes());
  // The swizzle repeats every 1024 bytes of the shared window, so the ring must begin at a multiple of that.
  extern __shared__ __align__(1024) std::byte raw[];
  if (shared_address(raw) % 1024 != 0) __trap();
  auto& storage = *reinterpret_cast<Storage*>(raw);

  begin_delays(arguments);
  const ClusterPlace<config> place;
  if (threadIdx.x == 0) {
    prefetch_descriptor(&arguments.x);
    prefetch_descriptor(&arguments.first_half.body);
    prefetch_descriptor(&arguments.second_half.body);
    prefetch_descriptor(&arguments.out);
    storage.ring.init();
  }
  if constexpr (config.cluster() > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }

  launch_next_grid();
  const Geometry& geometry = arguments.geometry;
  TileScheduler<config> scheduler(geometry, place);
  RingPosition<config.stages> position;

  if (threadIdx.x >= 128 * config.warpgroups) {
    register_limit_lower<config.producer_registers()>();
    const auto warp = static_cast<int>(threadIdx.x) / 32 - 4 * config.warpgroups;
    const Loader<config, Element> loader(static_cast<Part>(warp), arguments.x, arguments.first_half,
                                         arguments.second_half, geometry, place);
    if (threadIdx.x % 32 == 0 && warp < parts && loader.brings_something()) {
      loader.prefetch_weights(scheduler.tile());
      wait_for_previous_grid();
      for (; !scheduler.done(); scheduler.advance()) {
        loader.load(scheduler.tile(), storage.slots, storage.ring, position);
      }
    }
    __syncwarp();  // cluster_sync wants whole warps
  } else {
    register_limit_raise<config.consumer_registers()>();
    const int thread = static_cast<int>(threadIdx.x);
    // From one lane, so that the compiler knows it to be uniform and keeps the descriptors in uniform registers.
    const int warpgroup = __shfl_sync(0xffffffffU, thread / 128, 0);
    // In turns, a warpgroup takes every warpgroups-th tile and steps over the others' part of the ring.
    constexpr int turns = config.pingpong ? config.warpgroups : 1;
    const int turn = config.pingpong ? warpgroup : 0;
    if (turn == 1) Turns<config>::pass_on(turn);  // warpgroup 0 begins
    scheduler.advance(turn);
    position.advance(turn * geometry.k_steps);
    for (; !scheduler.done(); scheduler.advance(turns), position.advance((turns - 1) * geometry.k_steps)) {
      auto tCrC = cute::partition_fragment_C(
          typename Mainloop::TiledMma{},
          cute::Shape<cute::Int<Mainloop::rows>, cute::Int<Mainloop::columns>>{});  // ((2, 2, columns / 8), slabs, 1)
      Turns<config>::begin(turn);
      const Tile tile = scheduler.tile();
      const int warpgroup_of_tile = config.pingpong ? 0 : warpgroup;
      const int slabs = tile.slabs_of<config>(warpgroup_of_tile, geometry.tokens);
      if (slabs == config.slabs()) {
        Mainloop::template multiply<config.slabs()>(geometry, storage.slots, storage.ring, place, position,
                                                    warpgroup_of_tile, tCrC);
      } else if (slabs > 0) {
        Mainloop::template multiply<1>(geometry, storage.slots, storage.ring, place, position, warpgroup_of_tile, tCrC);
      } else {
        Mainloop::let_pass(geometry, storage.ring, place, position);
      }
      Turns<config>::pass_on(turn);
      if (slabs > 0) Epilogue::run(arguments.out, tile, slabs, arguments.combine, storage.epilogue, thread, tCrC);
    }
    if (thread % 128 == 0) store_wait_read();
  }
  // A block must outlive what its peers send it: copies and arrivals.
  if constexpr (config.cluster() > 1) cluster_sync();
}

}  // namespace gatefold::cuda::sm90
