#include "cuda/sm90/chain_launch.cuh"

namespace gatefold::cuda::sm90 {

const ChainKernel& fp16_chain_kernel() { return ChainLaunch<cute::half_t>::functions; }

}  // namespace gatefold::cuda::sm90
