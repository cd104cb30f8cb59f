#include "cuda/sm90/families.hpp"
#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_gated_kernels() {
  using E = cute::bfloat16_t;
  static constexpr Kernel family[] = {
      kernel_of<Tile256x192<E, true>>(696.0),
      kernel_of<Tile128x192<E, true>>(688.0),
      kernel_of<Tile128x256<E, true>>(682.0),
      kernel_of<Tile128x128<E, true>>(565.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm90
