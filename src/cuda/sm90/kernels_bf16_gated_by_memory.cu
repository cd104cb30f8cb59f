#include "cuda/sm90/families.hpp"
#include "cuda/sm90/gated_by_memory.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_gated_by_memory_kernels() { return gated_by_memory_kernels<cute::bfloat16_t>; }

}  // namespace gatefold::cuda::sm90
