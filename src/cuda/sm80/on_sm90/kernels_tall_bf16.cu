#include "cuda/sm80/launch.cuh"
#include "cuda/sm80/shapes.hpp"

namespace gatefold::cuda::sm80 {

std::span<const Kernel> tall_bf16_kernels() {
  static constexpr Kernel family[] = {
      kernel_of<Tall<Op::gate_up, DType::bf16>>(484.0),
      kernel_of<Tall<Op::gemm, DType::bf16>>(475.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm80
