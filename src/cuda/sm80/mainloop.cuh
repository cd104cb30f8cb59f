#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/algorithm/gemm.hpp>
#include <cute/arch/copy_sm80.hpp>

#include "cuda/sm80/ptx.cuh"
#include "cuda/sm80/tile_layouts.hpp"
#include "cuda/sm80/tile_loader.cuh"

namespace gatefold::sm80 {

// Multiplies the k-tiles of one output tile as they arrive. While the products of one k-block (16 columns; 8 for fp32)
// run, the fragments of the next are read, and a share of a k-tile C.stages - 1 ahead is requested.
template <Config C>
class Mainloop {
  using Layouts = TileLayouts<C>;
  using Element = typename Layouts::Element;
  static constexpr int k_blocks = Layouts::k_blocks;
  static constexpr int fp32 = C.dtype == DType::fp32;

 public:
  __device__ Mainloop(const Params& params, const std::byte** rows, Element* shared_a, Element* shared_b)
      : loader_(params, rows, cute::cast_smem_ptr_to_uint(shared_a)),
        shared_a_(shared_a),
        shared_b_(shared_b),
        k_tiles_((params.hidden_size + C.tile_k - 1) / C.tile_k) {
#pragma unroll 1
    for (int stage = 0; stage + 1 < C.stages; ++stage) {
      loader_.template load<0, 1>(stage);
      loader_.advance();
      cute::cp_async_fence();
    }
  }

  // All copies requested before this tile's first k-tile have landed: every thread's own.
  __device__ void wait_for_older_copies() const {
    if (k_tiles_ >= C.stages) {
      cute::cp_async_wait<C.stages - 1>();
    } else {
      cute::cp_async_wait<0>();
    }
  }

  template <class Accumulators>
  __device__ void run(Accumulators& tCrC) {  // (MMA,MMA_M,MMA_N)
    using namespace cute;
    const Tensor sA = make_tensor(make_smem_ptr(shared_a_), typename Layouts::SmemA{});  // (TILE_M,TILE_K,STAGES)
    const Tensor sB = make_tensor(make_smem_ptr(shared_b_), typename Layouts::SmemB{});  // (TILE_N,TILE_K,STAGES)

    typename Layouts::TiledMma mma;
    const auto thr_mma = mma.get_slice(threadIdx.x);
    Tensor tCrA = make_fragment_like<Element>(thr_mma.partition_fragment_A(sA(_, _, 0)));  // (MMA,MMA_M,MMA_K)
    Tensor tCrB = make_fragment_like<Element>(thr_mma.partition_fragment_B(sB(_, _, 0)));  // (MMA,MMA_N,MMA_K)

    const auto copy_a = make_tiled_copy_A(typename Layouts::LoadMatrix{}, mma);
    const auto copy_b = make_tiled_copy_B(typename Layouts::LoadMatrix{}, mma);
    const Tensor tXsA = copy_a.get_slice(threadIdx.x).partition_S(sA);  // (CPY,CPY_M,CPY_K,STAGES)
    const Tensor tXsB = copy_b.get_slice(threadIdx.x).partition_S(sB);  // (CPY,CPY_N,CPY_K,STAGES)
    Tensor tXrA = copy_a.get_slice(threadIdx.x).retile_D(tCrA);         // (CPY,CPY_M,CPY_K)
    Tensor tXrB = copy_b.get_slice(threadIdx.x).retile_D(tCrB);         // (CPY,CPY_N,CPY_K)

    const auto read = [&](auto block) {
      copy(copy_a, tXsA(_, _, block, stage_), tXrA(_, _, block));
      copy(copy_b, tXsB(_, _, block, stage_), tXrB(_, _, block));
    };

    wait_for_stage();
    read(Int<0>{});
#pragma unroll 1
    for (int k_tile = 1; k_tile <= k_tiles_; ++k_tile) {
      for_each(make_int_sequence<k_blocks>{}, [&](auto block) {
        if constexpr (block + 1 < k_blocks) {
          read(Int<block + 1>{});
          loader_.template load<block, k_blocks - 1>(stage_ == 0 ? C.stages - 1 : stage_ - 1);
        } else {
          loader_.advance();
          cp_async_fence();
          stage_ = stage_ + 1 == C.stages ? 0 : stage_ + 1;
          if (k_tile < k_tiles_) {
            wait_for_stage();
            read(Int<0>{});
          }
        }
        multiply(mma, tCrA(_, _, block), tCrB(_, _, block), tCrC);
      });
    }
  }

 private:
  // The oldest k-tile has landed for every thread, and every thread is done with the one before it.
  __device__ static void wait_for_stage() {
    cute::cp_async_wait<C.stages - 2>();
    __syncthreads();
  }

  template <class A, class B, class Accumulators>
  __device__ static void multiply(const typename Layouts::TiledMma& mma, const A& a, const B& b, Accumulators& c) {
    if constexpr (fp32) {
      auto a_big = cute::make_fragment_like<cute::tfloat32_t>(a);
      auto a_small = cute::make_fragment_like<cute::tfloat32_t>(a);
      auto b_big = cute::make_fragment_like<cute::tfloat32_t>(b);
      auto b_small = cute::make_fragment_like<cute::tfloat32_t>(b);
      split(a, a_big, a_small);
      split(b, b_big, b_small);
      cute::gemm(mma, a_small, b_big, c);
      cute::gemm(mma, a_big, b_small, c);
      cute::gemm(mma, a_big, b_big, c);
    } else {
      cute::gemm(mma, a, b, c);
    }
  }

  template <class Fragment, class Part>
  __device__ static void split(const Fragment& values, Part& big, Part& small) {
    CUTE_UNROLL
    for (int i = 0; i < cute::size(values); ++i) {
      const std::uint32_t high = to_tf32(values(i));
      big(i) = cute::tfloat32_t::bitcast(high);
      small(i) = cute::tfloat32_t::bitcast(to_tf32(values(i) - __uint_as_float(high)));
    }
  }

  TileLoader<C> loader_;
  Element* shared_a_;
  Element* shared_b_;
  int k_tiles_;
  int stage_ = 0;
};

}  // namespace gatefold::sm80
