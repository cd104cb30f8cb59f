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

  // (rows, box_k, others): a line of so many rows, and others by their distances in elements, multiples of the
  // swizzle's eight rows.
  template <int rows, class Others>
  static __device__ auto smem_layout(Others others) {
    const auto line = cute::tile_to_shape(SmemAtom{}, cute::Shape<cute::Int<rows>, cute::Int<Config::box_k>>{});
    return cute::make_composed_layout(line.layout_a(), line.offset(), cute::append(line.layout_b(), others));
  }

  // Of a wgmma's rows in a slot, by wgmma, line and stage.
  static __device__ auto weight_distances(int slab_rows) {
    const int slab = slab_rows * Config::box_k * (config.requests() == 1 ? 1 : config.boxes());
    const int line = config.request_rows(slab_rows) * Config::box_k;
    constexpr int stage = Config::step_bytes / Config::element_bytes;
    return cute::make_layout(
        cute::Shape<cute::Int<config.wgmmas()>, cute::Int<config.boxes()>, cute::Int<Config::stages>>{},
        cute::make_stride(slab, line, cute::Int<stage>{}));
  }

  // By the consumer warpgroup: tCrC = weight rows . x^T, fp32, over a tile's k-steps of this block. One of them stays
  // in flight.
  template <class Accumulator>
  static __device__ void multiply(const Slots<config, Element>& slots, Ring<config>& ring, const ClusterPlace& place,
                                  RingPosition& position, Accumulator& tCrC) {
    using namespace cute;
    // (64 rows, box_k, (wgmmas, boxes, stages))
    auto sA = make_tensor(make_smem_ptr(slots.weights[0]),
                          smem_layout<Config::wgmma_rows>(weight_distances(place.geometry.slab_rows)));
    // (columns, box_k, stages x boxes)
    auto sB = make_tensor(
        make_smem_ptr(slots.x[0][0]),
        smem_layout<columns>(make_layout(Int<config.boxes() * Config::stages>{}, Int<columns * Config::box_k>{})));
    TiledMma tiled_mma;
    auto thr_mma = tiled_mma.get_slice(0);
    auto tCrA =
        thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, 1, mma_k, (wgmmas, boxes, stages)): descriptors
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
            cute::gemm(tiled_mma, tCrA(_, 0, k, make_coord(m, box, position.slot)), tCrB(_, 0, k, at), tCrC(_, m, 0));
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
