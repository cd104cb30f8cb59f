#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/types.hpp"
#include "cuda/common/combine.cuh"
#include "cuda/copy_engine/delay.cuh"
#include "cuda/sm80/config.hpp"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/weight_rows.hpp"

namespace gatefold::cuda::sm80 {

// What a kernel of this family is given for one run.
struct Params {
  const std::byte* x = nullptr;
  std::int64_t x_row_bytes = 0;
  WeightRows gate_rows;             // gate_up only
  WeightRows up_rows;               // the weight of gemm and gemm_gated
  const std::byte* gate = nullptr;  // gemm_gated: the gate values
  std::int64_t ld_gate = 0;
  std::byte* out = nullptr;
  std::int64_t ld_out = 0;
  std::int64_t tokens = 0;
  std::int32_t sum_bytes = 0;  // hidden_size elements
  std::int32_t k_tiles = 0;
  std::int32_t intermediate_size = 0;
  Division division;
  std::int32_t first_share = 0;  // of what is divided, that of this launch
  std::int32_t end_share = 0;
  bool gate_vectors = false;  // the gate values' rows begin at multiples of 16 bytes
  bool out_vectors = false;   // the output's do
  Combine combine;            // of gate_up in 16-bit types
  ExactCombine exact;         // of the others
};

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

// Build: as gemm_kernel's.
template <class Build>
struct ParamsOf {
  using Type = std::conditional_t<Build::config.copies == Copies::boxes, BoxParams, Params>;
};

}  // namespace gatefold::cuda::sm80
