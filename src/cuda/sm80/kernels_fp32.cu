#include "cuda/sm80/launch.cuh"
#include "cuda/sm80/shapes.hpp"

namespace gatefold::cuda::sm80 {

std::span<const Kernel> fp32_kernels() {
  static constexpr Kernel family[] = {
      kernel_of<Fp32<Op::gate_up>>(77.0),
      kernel_of<Fp32<Op::gemm>>(77.0),
      kernel_of<Fp32<Op::gemm_gated>>(64.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm80
