#pragma once

#include <cute/tensor.hpp>

namespace gatefold::cuda::sm80 {

// multiply() for each k-tile of one output tile, while a loader requests those that are to follow: where it comes to
// the end of its own tile, which lies ahead, it goes on to the next between two of them.
template <class Loader, class Multiply>
CUTE_DEVICE void for_each_k_tile(Loader& loader, int k_tiles, Multiply multiply) {
  int left = k_tiles;
#pragma unroll 1
  do {
    int steps = min(left, loader.left());
    left -= steps;
#pragma unroll 1
    for (; steps > 0; --steps) multiply();
    if (loader.left() == 0) loader.next_tile();
  } while (left > 0);
}

}  // namespace gatefold::cuda::sm80
