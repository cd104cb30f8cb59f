#include "cuda/sm90/families.hpp"
#include "cuda/sm90/gated_parts.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_gated_kernels_in_parts() { return gated_kernels_in_parts<cute::half_t>; }

}  // namespace gatefold::cuda::sm90
