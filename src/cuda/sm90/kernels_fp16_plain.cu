#include "cuda/sm90/families.hpp"
#include "cuda/sm90/plain.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_plain_kernels() { return plain_kernels<cute::half_t>; }

}  // namespace gatefold::cuda::sm90
