#include "cuda/sm90/kernels_by_request.hpp"
#include "cuda/sm90/row_scale.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_row_scale_kernels() { return row_scale_kernels<cute::bfloat16_t>; }

}  // namespace gatefold::cuda::sm90
