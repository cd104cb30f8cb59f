#include "cuda/sm90/families.hpp"
#include "cuda/sm90/family.cuh"

namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_plain_kernels() {
  using E = cute::bfloat16_t;
  static constexpr Kernel family[] = {
      kernel_of<Tile256x192<E, false>>(708.0),  // many tokens
      kernel_of<Tile256x160<E, false>>(700.0),  // many, where its width leaves less over
      kernel_of<Tile128x256<E, false>>(682.0),  // from 256 tokens
      kernel_of<Tile128x224<E, false>>(676.0),  // from 256 tokens, likewise
      kernel_of<Tile128x128<E, false>>(571.0),  // small products
  };
  return family;
}

}  // namespace gatefold::cuda::sm90
