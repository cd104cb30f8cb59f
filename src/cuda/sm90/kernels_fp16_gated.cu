#include "cuda/sm90/families.hpp"
#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> fp16_gated_kernels() {
  using E = cute::half_t;
  static constexpr Kernel family[] = {
      kernel_of<Tile256x192<E, true>>(708.0),     // many tokens
      kernel_of<Tile256x160<E, true>>(700.0),     // many, where its width leaves less over
      kernel_of<Tile128x256<E, true>>(682.0),     // from 256 tokens
      kernel_of<Tile128x224<E, true>>(676.0),     // from 256 tokens, likewise
      kernel_of<Tile128x160<E, true>>(676.0),     // likewise
      kernel_of<Tile128x224Row<E, true>>(670.0),  // up to 128 tokens
      kernel_of<Tile128x128<E, true>>(571.0),     // small products
  };
  return family;
}

}  // namespace gatefold::cuda::sm90
