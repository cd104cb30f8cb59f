#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// One wide wgmma per 64 tokens and 16 of k: its N = tile_n columns are tile_n / 2 rows of gate and then tile_n / 2 of
// up, so that a thread's accumulators for gate column j and for up column j are tile_n / 4 registers apart in the same
// thread. Two copies of tile_n / 2 rows fill the B tile, each through its own descriptor: any distance and order of the
// two halves is a pair of descriptors.
template <Config config, class Element>
struct Mainloop {
  using Atom =
      decltype(cute::SM90::GMMA::ss_op_selector<Element, Element, float,
                                                cute::Shape<cute::Int<64>, cute::Int<config.tile_n>, cute::Int<16>>>());
  // CuTe falls back to several narrow instructions, a quarter slower, for widths that it doesn't know: those of
  // CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED.
  static_assert(cute::size<1>(typename cute::MMA_Traits<Atom>::Shape_MNK{}) == config.tile_n);
  using TiledMma = decltype(cute::make_tiled_mma(
      Atom{}, cute::Layout<cute::Shape<cute::Int<config.warpgroups_per_tile()>, cute::_1, cute::_1>>{}));
  using SmemAtom = cute::SM90::GMMA::Layout_K_SW128_Atom<Element>;
  using SmemLayoutA = decltype(cute::tile_to_shape(
      SmemAtom{}, cute::Shape<cute::Int<config.tile_m>, cute::Int<Config::tile_k>, cute::Int<config.stages>>{}));
  using SmemLayoutB = decltype(cute::tile_to_shape(
      SmemAtom{}, cute::Shape<cute::Int<config.tile_n>, cute::Int<Config::tile_k>, cute::Int<config.stages>>{}));

  static constexpr int a_elements = config.tile_m * Config::tile_k;  // of one stage
  static constexpr int b_elements = config.tile_n * Config::tile_k;

  struct alignas(1024) Storage {
    Element a[config.stages * a_elements];
    Element b[config.stages * b_elements];
  };

  // Row `row` of a half lies in repetition row / block of the layout's pattern, at row % block.
  struct HalfCoordinate {
    int row;
    int repetition;
  };
  static __device__ HalfCoordinate half_coordinate(int row, int block) {
    const int repetition = row / block;
    return {row - repetition * block, repetition};
  }

  // By one thread of the producer warp: fills the ring with the k-steps of one tile. Rows of x past x_rows keep what
  // was there: their products are clipped when they are stored.
  static __device__ void load(const CUtensorMap& x, const CUtensorMap& first_half, const CUtensorMap& second_half,
                              const Geometry& geometry, const TileIndex& tile, Storage& storage, Ring<config>& ring,
                              const ClusterPlace<config>& place, RingPosition<config.stages>& position) {
    constexpr int half_rows = config.tile_n / 2;
    const int x_rows = geometry.x_rows;
    const int x_row = tile.m * config.tile_m + static_cast<int>(place.n) * x_rows;
    const int bytes = (x_rows * config.cluster_n + config.tile_n) * Config::tile_k * 2;
    const int first_row = tile.n * config.columns();
    const HalfCoordinate first = half_coordinate(first_row, geometry.block);
    const HalfCoordinate second = half_coordinate(first_row + (config.gated ? 0 : half_rows), geometry.block);

    for (int step = 0; step < geometry.k_steps; ++step) {
      const int slot = position.slot;
      barrier_wait(&ring.empty[slot], position.phase ^ 1);
      std::uint64_t* full = &ring.full[slot];
      barrier_expect_bytes(full, bytes);
      const int k = step * Config::tile_k;

      Element* a = storage.a + slot * a_elements;
      if constexpr (config.cluster_n == 1) {
        load_tile_2d(&x, full, a, k, x_row);
      } else {
        load_tile_2d_multicast(&x, full, a + place.n * x_rows * Config::tile_k, k, x_row, place.token_sharers());
      }

      Element* b = storage.b + slot * b_elements;
      if constexpr (config.cluster_m == 1) {
        load_tile_3d(&first_half, full, b, k, first.row, first.repetition);
        load_tile_3d(&second_half, full, b + b_elements / 2, k, second.row, second.repetition);
      } else {  // block 0 brings the first half to both, block 1 the second
        const bool is_first = place.m == 0;
        const HalfCoordinate mine = is_first ? first : second;
        load_tile_3d_multicast(is_first ? &first_half : &second_half, full, b + (is_first ? 0 : b_elements / 2), k,
                               mine.row, mine.repetition, place.weight_sharers());
      }
      position.advance();
    }
  }

  // By all threads of a consumer warpgroup, number `warpgroup` of those that share the tile: tCrC = x tile . weight
  // tile^T, fp32.
  template <class Accumulator>
  static __device__ void multiply(const Geometry& geometry, Storage& storage, Ring<config>& ring,
                                  const ClusterPlace<config>& place, RingPosition<config.stages>& position,
                                  int warpgroup, Accumulator& tCrC) {
    using namespace cute;
    const std::uint32_t lane = threadIdx.x % 32;
    auto sA = make_tensor(make_smem_ptr(storage.a), SmemLayoutA{});  // (tile_m, tile_k, stages)
    auto sB = make_tensor(make_smem_ptr(storage.b), SmemLayoutB{});  // (tile_n, tile_k, stages)
    TiledMma tiled_mma;
    auto thr_mma = tiled_mma.get_slice(warpgroup * 128);
    auto tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, mma_m, mma_k, stages): descriptors
    auto tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));  // (mma, mma_n, mma_k, stages): descriptors

    tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::Zero;
    int previous = -1;
    for (int step = 0; step < geometry.k_steps; ++step) {
      const int slot = position.slot;
      barrier_wait(&ring.full[slot], position.phase);
      warpgroup_fence_operand(tCrC);
      warpgroup_arrive();
#pragma unroll
      for (int k = 0; k < size<2>(tCrA); ++k) {
        cute::gemm(tiled_mma, tCrA(_, _, k, slot), tCrB(_, _, k, slot), tCrC);
        tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::One;
      }
      warpgroup_commit_batch();
      // One k-step stays in flight; the one before it has been read.
      warpgroup_wait<1>();
      warpgroup_fence_operand(tCrC);
      if (previous >= 0) ring.release(previous, place, lane);
      previous = slot;
      position.advance();
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(tCrC);
    if (previous >= 0) ring.release(previous, place, lane);
  }
};

}  // namespace gatefold::cuda::sm90
