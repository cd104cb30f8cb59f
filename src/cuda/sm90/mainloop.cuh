#pragma once

#include <cute/tensor.hpp>

#include "cuda/common/wgmma.cuh"
#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/pipeline.cuh"

namespace gatefold::cuda::sm90 {

// One wide wgmma per 64 tokens and 16 of k: its N = tile_n columns are tile_n / 2 rows of gate and then tile_n / 2 of
// up, so that a thread's accumulators for gate column j and for up column j are tile_n / 4 registers apart in the same
// thread.
//
// With swap-AB, one per 64 weight rows: N = tile_m tokens. Of its two slabs a warpgroup has gate's 64 rows in the first
// and up's in the second, and so again both of a column in the same thread.
template <Config config, class Element>
struct Mainloop {
  static constexpr int rows = config.swap_ab ? config.tile_n : config.tile_m;  // of the tile's wgmmas
  static constexpr int columns = config.swap_ab ? config.tile_m : config.tile_n;
  static constexpr int width = columns / config.column_warpgroups();  // of a wgmma
  using TiledMma = decltype(cute::make_tiled_mma(
      Wgmma<Element, width>{},
      cute::Layout<
          cute::Shape<cute::Int<config.row_warpgroups()>, cute::Int<config.column_warpgroups()>, cute::_1>>{}));
  using SmemAtom = cute::SM90::GMMA::Layout_K_SW128_Atom<Element>;
  using SmemLayoutA = decltype(cute::tile_to_shape(
      SmemAtom{}, cute::Shape<cute::Int<rows>, cute::Int<config.tile_k()>, cute::Int<config.stages>>{}));
  using SmemLayoutB = decltype(cute::tile_to_shape(
      SmemAtom{}, cute::Shape<cute::Int<columns>, cute::Int<config.tile_k()>, cute::Int<config.stages>>{}));

  // By all threads of a consumer warpgroup, number `warpgroup` of those that share the tile: tCrC = x tile . weight
  // tile^T, fp32, or its transpose. slabs: all that the warpgroup has or the first of two. released(where, step): when
  // the warpgroup has multiplied a k-step and released its slot. The parts of a sum are added in order.
  template <int slabs, class Accumulator, class Released>
  static __device__ void multiply(const Geometry& geometry, const Slots<config, Element>& slots, Ring<config>& ring,
                                  const ClusterPlace<config>& place, RingPosition<config.stages>& position,
                                  int warpgroup, Accumulator& tCrC, Released released) {
    if constexpr (!config.adds_parts) {
      multiply_steps<slabs>(0, geometry.k_steps, slots, ring, place, position, warpgroup, tCrC, released);
    } else {
      auto part = cute::make_fragment_like(tCrC);
      for (int begin = 0; begin < geometry.k_steps; begin += geometry.part_steps) {
        const int end = min(begin + geometry.part_steps, geometry.k_steps);
        multiply_steps<slabs>(begin, end, slots, ring, place, position, warpgroup, part, released);
#pragma unroll
        for (int i = 0; i < cute::size(tCrC); ++i) tCrC(i) = begin == 0 ? part(i) : tCrC(i) + part(i);
      }
    }
  }

  // Instead, by a warpgroup that has none of the tile's tokens: the others' k-steps come and go.
  template <class Released>
  static __device__ void skip_tile(const Geometry& geometry, Ring<config>& ring, const ClusterPlace<config>& place,
                                   RingPosition<config.stages>& position, Released released) {
    for (int step = 0; step < geometry.k_steps; ++step) {
      barrier_wait(&ring.full[position.slot], position.phase);
      __syncwarp();  // no lane may still wait when the slot is filled again: it would wait for the phase after
      ring.release(position.slot, place, threadIdx.x % 32);
      released(position, step);
      position.advance();
    }
  }

 private:
  // The descriptors of one slot. `all`: those of every slot. low_word: of the slot's first one.
  //
  // A wgmma takes its descriptors, of 64 bits each, from uniform registers. What ptxas does not know to be the same in
  // all lanes it works out in every lane, and moves there word by word before each wgmma: 97 instructions for a k-step
  // of 128x128. Of a shuffled value it knows, so that from a shuffled slot number everything else follows in uniform
  // registers: 65 instructions (check_wgmma_code.py).
  template <class Fragment>
  static __device__ auto of_slot(const Fragment& all, std::uint32_t low_word) {
    auto descriptors = all.data();
    descriptors.desc_.reg32_[0] = low_word;
    return cute::make_tensor(descriptors, cute::take<0, 3>(all.layout()));
  }

  // The length of so many rows' k-step in 16 bytes, the unit in which descriptors count.
  static constexpr std::uint32_t pieces_of(int row_count) { return row_count * config.tile_k() * sizeof(Element) / 16; }

  // The sums of the k-steps from `begin` to before `end`, of which there is one at least.
  template <int slabs, class Accumulator, class Released>
  static __device__ __forceinline__ void multiply_steps(int begin, int end, const Slots<config, Element>& slots,
                                                        Ring<config>& ring, const ClusterPlace<config>& place,
                                                        RingPosition<config.stages>& position, int warpgroup,
                                                        Accumulator& tCrC, Released released) {
    using namespace cute;
    const std::uint32_t lane = threadIdx.x % 32;
    auto sA = make_tensor(make_smem_ptr(config.swap_ab ? slots.b : slots.a), SmemLayoutA{});  // (rows, tile_k, stages)
    auto sB =
        make_tensor(make_smem_ptr(config.swap_ab ? slots.a : slots.b), SmemLayoutB{});  // (columns, tile_k, stages)
    TiledMma tiled_mma;
    auto thr_mma = tiled_mma.get_slice(warpgroup * 128);
    auto tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, mma_m, mma_k, stages): descriptors
    auto tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));  // (mma, mma_n, mma_k, stages): descriptors

    const std::uint32_t first_a = uniform(tCrA.data().desc_.reg32_[0]);
    const std::uint32_t first_b = uniform(tCrB.data().desc_.reg32_[0]);

    tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::Zero;
    for (int step = begin; step < end; ++step) {
      barrier_wait(&ring.full[position.slot], position.phase);
      warpgroup_fence_operand(tCrC);
      warpgroup_arrive();
      const auto slot = static_cast<std::uint32_t>(uniform(position.slot));
      const auto slot_a = of_slot(tCrA, first_a + slot * pieces_of(rows));     // (mma, mma_m, mma_k)
      const auto slot_b = of_slot(tCrB, first_b + slot * pieces_of(columns));  // (mma, mma_n, mma_k)
#pragma unroll
      for (int k = 0; k < size<2>(tCrA); ++k) {
#pragma unroll
        for (int slab = 0; slab < slabs; ++slab) {
          cute::gemm(tiled_mma, slot_a(_, slab, k), slot_b(_, 0, k), tCrC(_, slab, 0));
        }
        tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::One;
      }
      warpgroup_commit_batch();
      // One k-step stays in flight; the one before it has been read.
      warpgroup_wait<1>();
      warpgroup_fence_operand(tCrC);
      if (step > begin) {
        const auto before = position.before();
        ring.release(before.slot, place, lane);
        released(before, step - 1);
      }
      position.advance();
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(tCrC);
    const auto before = position.before();
    ring.release(before.slot, place, lane);
    released(before, end - 1);
  }
};

}  // namespace gatefold::cuda::sm90
