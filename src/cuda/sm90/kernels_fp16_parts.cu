#include "cuda/sm90/families.hpp"
#include "cuda/sm90/parts.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_kernels_in_parts() { return kernels_in_parts<cute::half_t>; }

}  // namespace gatefold::cuda::sm90
