#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/copy_engine/copies.cuh"

namespace gatefold::bench {

// By one thread: bytes, a multiple of 16, side by side from memory to this block's shared memory. The barrier counts
// them.
__device__ inline void copy_piece(std::uint64_t* barrier, std::byte* shared, const std::byte* from, int bytes,
                                  std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(cuda::shared_address(shared)),
      "l"(from), "r"(bytes), "r"(cuda::shared_address(barrier)), "l"(policy)
      : "memory");
}

}  // namespace gatefold::bench
