#include "cuda/sm90/divided.cuh"
#include "cuda/sm90/kernels_by_request.hpp"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_divided_plain_kernels() { return divided_plain_kernels<cute::half_t>; }
std::span<const Kernel> fp16_settled_divided_plain_kernels() { return settled_divided_plain_kernels<cute::half_t>; }

}  // namespace gatefold::cuda::sm90
