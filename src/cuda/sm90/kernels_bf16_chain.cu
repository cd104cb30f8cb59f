#include "cuda/sm90/chain_launch.cuh"

namespace gatefold::cuda::sm90 {

const ChainKernel& bf16_chain_kernel() { return ChainLaunch<cute::bfloat16_t>::functions; }

}  // namespace gatefold::cuda::sm90
