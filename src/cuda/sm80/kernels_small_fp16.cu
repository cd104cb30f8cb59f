#include "cuda/sm80/launch.cuh"
#include "cuda/sm80/shapes.hpp"

namespace gatefold::cuda::sm80 {

std::span<const Kernel> small_fp16_kernels() {
  static constexpr Kernel family[] = {
      kernel_of<Small<Op::gate_up, DType::fp16>>(343.0),
      kernel_of<Small<Op::gemm, DType::fp16>>(345.0),
      kernel_of<Small<Op::gemm_gated, DType::fp16>>(338.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm80
