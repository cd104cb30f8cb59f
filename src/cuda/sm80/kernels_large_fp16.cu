#include "cuda/sm80/launch.cuh"
#include "cuda/sm80/shapes.hpp"

namespace gatefold::cuda::sm80 {

std::span<const Kernel> large_fp16_kernels() {
  static constexpr Kernel family[] = {
      kernel_of<Large<Op::gate_up, DType::fp16>>(431.0),
      kernel_of<Large<Op::gemm, DType::fp16>>(423.0),
      kernel_of<Large<Op::gemm_gated, DType::fp16>>(413.0),
      kernel_of<LargeAnyOrder<DType::fp16>>(419.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm80
