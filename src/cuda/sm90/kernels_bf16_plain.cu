#include "cuda/sm90/families.hpp"
#include "cuda/sm90/plain.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_plain_kernels() { return plain_kernels<cute::bfloat16_t>; }

}  // namespace gatefold::cuda::sm90
