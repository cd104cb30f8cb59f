#include "cuda/sm80/launch.cuh"
#include "cuda/sm80/shapes.hpp"

namespace gatefold::cuda::sm80 {

std::span<const Kernel> small_bf16_kernels() {
  static constexpr Kernel family[] = {
      kernel_of<Small<Op::gate_up, DType::bf16>>(343.0),
      kernel_of<Small<Op::gemm, DType::bf16>>(345.0),
      kernel_of<Small<Op::gemm_gated, DType::bf16>>(338.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm80
