#include "cuda/sm90/adding.cuh"
#include "cuda/sm90/kernels_by_request.hpp"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_adding_kernels() { return adding_kernels<cute::bfloat16_t>; }

}  // namespace gatefold::cuda::sm90
