#include "cuda/sm90/families.hpp"
#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_plain_kernels() {
  using E = cute::half_t;
  static constexpr Kernel family[] = {
      kernel_of<Tile256x192<E, false>>(696.0),
      kernel_of<Tile128x192<E, false>>(688.0),
      kernel_of<Tile128x256<E, false>>(682.0),
      kernel_of<Tile128x128<E, false>>(565.0),
  };
  return family;
}

}  // namespace gatefold::cuda::sm90
