#include "cuda/sm80/launch.cuh"
#include "cuda/sm80/shapes.hpp"

namespace gatefold::cuda::sm80 {

std::span<const Kernel> large_bf16_kernels() {
  static constexpr Kernel family[] = {
      kernel_of<Large<Op::gate_up, DType::bf16>>(431.0),
      kernel_of<Large<Op::gemm, DType::bf16>>(423.0),
      kernel_of<Large<Op::gemm_gated, DType::bf16>>(413.0),
      kernel_of<LargeAnyOrder<DType::bf16>>(419.0),
      kernel_of<LargeAnyOrder<DType::bf16, Gating::even_odd>>(414.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm80
