#pragma once

#include <cute/tensor.hpp>

#include <cstdint>

#include "cuda/common/wgmma.cuh"
#include "tensor_loops.hpp"

// Products of a Hopper out of shared memory, as sm90's main loop orders them, without the copies that bring operands.
namespace gatefold::bench {

inline constexpr int product_threads = 256;
inline constexpr int tile_m = 256, tile_n = 192, tile_k = 64;
inline constexpr int slot_bytes = (tile_m + tile_n) * tile_k * 2;
inline constexpr double wgmma_flops = 2.0 * tile_m * tile_n * tile_k;  // of a step

// By those threads; others of the block may be at other work.
template <int slots>
__device__ void fill_slots(std::uint32_t* shared, const std::uint32_t* data) {
  for (int i = static_cast<int>(threadIdx.x); i < slots * slot_bytes / 4; i += product_threads) {
    shared[i] = data[i % loop_words];
  }
}

// By two warpgroups of 128x192 each, from slots that fill_slots() filled and that don't change: a sum that hangs on all
// products, so that none is left out.
template <class Element, int slots>
__device__ float multiply_slots(std::uint32_t* shared, int steps) {
  using namespace cute;
  using SmemAtom = SM90::GMMA::Layout_K_SW128_Atom<Element>;
  auto* elements = reinterpret_cast<Element*>(shared);
  auto sA = make_tensor(make_smem_ptr(elements),  // (tile_m, tile_k, slots)
                        tile_to_shape(SmemAtom{}, Shape<Int<tile_m>, Int<tile_k>, Int<slots>>{}));
  auto sB = make_tensor(make_smem_ptr(elements + slots * tile_m * tile_k),  // (tile_n, tile_k, slots)
                        tile_to_shape(SmemAtom{}, Shape<Int<tile_n>, Int<tile_k>, Int<slots>>{}));
  auto tiled_mma = make_tiled_mma(cuda::Wgmma<Element, tile_n>{}, Layout<Shape<_2, _1, _1>>{});
  auto thr_mma = tiled_mma.get_slice(__shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0) * 128);
  auto tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));  // (mma, mma_m, mma_k, slots): descriptors
  auto tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));  // (mma, mma_n, mma_k, slots): descriptors
  auto tCrC = partition_fragment_C(tiled_mma, Shape<Int<tile_m>, Int<tile_n>>{});
  clear(tCrC);
  tiled_mma.accumulate_ = SM90::GMMA::ScaleOut::One;
  int slot = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    warpgroup_fence_operand(tCrC);
    warpgroup_arrive();
#pragma unroll
    for (int k = 0; k < size<2>(tCrA); ++k) {
#pragma unroll
      for (int slab = 0; slab < size<1>(tCrA); ++slab) {
        cute::gemm(tiled_mma, tCrA(_, slab, k, slot), tCrB(_, 0, k, slot), tCrC(_, slab, 0));
      }
    }
    warpgroup_commit_batch();
    warpgroup_wait<1>();
    warpgroup_fence_operand(tCrC);
    slot = slot == slots - 1 ? 0 : slot + 1;
  }
  warpgroup_wait<0>();
  warpgroup_fence_operand(tCrC);
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < size(tCrC); ++i) sum += tCrC(i);
  return sum;
}

}  // namespace gatefold::bench
