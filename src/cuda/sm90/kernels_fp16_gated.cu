#include "cuda/sm90/families.hpp"
#include "cuda/sm90/gated.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_gated_kernels() { return gated_kernels<cute::half_t>; }

}  // namespace gatefold::cuda::sm90
