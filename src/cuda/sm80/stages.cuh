#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/arch/copy_sm80.hpp>

#include "cuda/sm80/k_tiles.cuh"
#include "cuda/sm80/params.cuh"

namespace gatefold::cuda::sm80 {

// Loads are the ring of k-tiles in shared memory, and what fills it; a main loop has them as a member. Loader:
// TileLoader or LineLoader, by which the block's own threads copy.
//
// The ring of k-tiles in shared memory: one is multiplied, C.stages - 2 are on their way, and the last is requested
// while the one is multiplied. All its addresses are offsets from stage 0, the same for all threads.
template <Config C, class Loader>
class Stages {
 public:
  using Arguments = Params;
  static constexpr int copies = Loader::copies;  // of one thread for one k-tile

  __device__ Stages(const Params& params, std::uint32_t shared) : loader_(params, shared), k_tiles_(params.k_tiles) {
#pragma unroll 1
    for (int stage = 0; stage + 1 < C.stages; ++stage) {
#pragma unroll
      for (int i = 0; i < copies; ++i) copy(i, stage * C.stage_bytes());
      end_copies();
      if (loader_.left() == 0) loader_.next_tile();
    }
    wait();
  }

  // multiply() for each k-tile of one output tile, the current stage; it ends with advance().
  template <class Multiply>
  CUTE_DEVICE void for_each_k_tile(Multiply multiply) {
    sm80::for_each_k_tile(loader_, k_tiles_, multiply);
  }

  __device__ std::uint32_t current() const { return offset_; }
  // The stage to be filled, which was current before.
  __device__ std::uint32_t free() const {
    return offset_ == 0 ? (C.stages - 1) * C.stage_bytes() : offset_ - C.stage_bytes();
  }

  // Copy number `i` of the k-tile that is requested now, to the stage at `offset`.
  __device__ __forceinline__ void copy(int i, std::uint32_t offset) const { loader_.copy(i, offset); }

  // To be called when every copy has been requested: the next stage becomes current.
  __device__ __forceinline__ void advance() {
    end_copies();
    wait();
    offset_ = offset_ == (C.stages - 1) * C.stage_bytes() ? 0 : offset_ + C.stage_bytes();
  }

  // All copies requested before this tile's first k-tile have landed: this thread's own.
  __device__ void wait_for_older_copies() const {
    if (k_tiles_ < C.stages - 1) cute::cp_async_wait<0>();
  }

 private:
  __device__ __forceinline__ void end_copies() {
    cute::cp_async_fence();
    loader_.advance();
  }

  // The oldest k-tile has landed for every thread, and every thread has read all of the one before it.
  __device__ __forceinline__ static void wait() {
    cute::cp_async_wait<C.stages - 2>();
    __syncthreads();
  }

  Loader loader_;
  int k_tiles_;
  std::uint32_t offset_ = 0;  // of the stage that is multiplied
};

}  // namespace gatefold::cuda::sm80
