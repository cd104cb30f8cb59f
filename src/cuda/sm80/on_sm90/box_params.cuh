#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/copy_engine/delay.cuh"
#include "cuda/sm80/params.cuh"

namespace gatefold::cuda::sm80 {

// What a kernel that takes its tiles from the copy engine is given as well.
struct BoxParams : Params, DelaySeed {
  enum Tensor : std::uint8_t {
    of_x,
    of_weights,
    of_narrow_weights = of_weights + 2,
    tensor_count = of_narrow_weights + 2
  };
  // x; gate and up, or twice the one weight; where the division has narrow tiles, these two again in their boxes.
  CUtensorMap tensors[tensor_count];
  std::int32_t block = 0;  // rows of a half before the other half begins (the layout's block); F where apart
};

}  // namespace gatefold::cuda::sm80
