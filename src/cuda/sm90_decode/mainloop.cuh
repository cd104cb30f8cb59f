#pragma once

#include <cute/tensor.hpp>

#include "cuda/common/wgmma.cuh"
#include "cuda/sm90_decode/pipeline.cuh"

namespace gatefold::cuda::sm90_decode {

// A wgmma per slab and 16 of k: 64 weight rows by N = tokens (swap-AB).
template <Config config, class Element>
struct Mainloop {
  static constexpr int columns = config.tokens;
  using TiledMma = decltype(cute::make_tiled_mma(Wgmma<Operand<Element>, columns>{}));
  using SmemAtom = cute::SM90::GMMA::Layout_K_SW128_Atom<Operand<Element>>;
  template <int lines>
  using SmemLayout = decltype(cute::tile_to_shape(
      SmemAtom{},
      cute::Shape<cute::Int<lines>, cute::Int<Config::box_k>, cute::Int<config.boxes() * Config::stages>>{}));

  // By the consumer warpgroup: tCrC = weight rows . x^T, fp32, over a tile's k-steps of this block. One of them stays
  // in flight.
  template <class Accumulator>
  static __device__ void multiply(const Slots<config, Element>& slots, Ring<config>& ring, const ClusterPlace& place,
                                  RingPosition& position, Accumulator& tCrC) {
    using namespace cute;
    auto sA =
        make_tensor(make_smem_ptr(slots.weights[0][0]), SmemLayout<config.rows()>{});  // (rows, box_k, stages x boxes)
    auto sB = make_tensor(make_smem_ptr(slots.x[0][0]), SmemLayout<columns>{});  // (columns, box_k, stages x boxes)
    TiledMma tiled_mma;
    auto thr_mma = tiled_mma.get_slice(0);
    auto tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, slabs, mma_k, stages x boxes): descriptors
    auto tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));  // (mma, 1, mma_k, stages x boxes): descriptors

    tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::Zero;
    int before = -1;
    for (int step = 0; step < place.steps; ++step) {
      barrier_wait(&ring.full[position.slot], position.phase);
      warpgroup_fence_operand(tCrC);
      warpgroup_arrive();
#pragma unroll
      for (int box = 0; box < config.boxes(); ++box) {
        const int at = position.slot * config.boxes() + box;
#pragma unroll
        for (int k = 0; k < size<2>(tCrA); ++k) {
#pragma unroll
          for (int m = 0; m < config.wgmmas(); ++m) {
            cute::gemm(tiled_mma, tCrA(_, m, k, at), tCrB(_, 0, k, at), tCrC(_, m, 0));
          }
          tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::One;
        }
      }
      warpgroup_commit_batch();
      warpgroup_wait<1>();
      warpgroup_fence_operand(tCrC);
      if (before >= 0) ring.release(before);
      before = position.slot;
      position.advance();
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(tCrC);
    ring.release(before);
  }
};

}  // namespace gatefold::cuda::sm90_decode
