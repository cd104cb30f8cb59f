#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.hpp"
#include "cuda/common/bias.cuh"
#include "cuda/common/combine.cuh"
#include "cuda/sm80/config.hpp"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/weight_rows.hpp"

namespace gatefold::cuda::sm80 {

// What a kernel of this family is given for one run: the parameters of its policies (shape.cuh), side by side.

// Of the loads.
struct LoadParams {
  const std::byte* x = nullptr;
  std::int64_t x_row_bytes = 0;
  WeightRows gate_rows;  // gate_up only
  WeightRows up_rows;    // the weight of gemm and gemm_gated
};

// Of the epilogue.
struct EpilogueParams {
  const std::byte* gate = nullptr;  // gemm_gated: the gate values
  std::int64_t ld_gate = 0;
  std::byte* out = nullptr;
  std::int64_t ld_out = 0;
  bool gate_vectors = false;  // the gate values' rows begin at multiples of 16 bytes
  bool out_vectors = false;   // the output's do
  Combine combine;            // of gate_up in 16-bit types
  ExactCombine exact;         // of the others
  TileBias gate_bias;         // gate_up only
  TileBias up_bias;           // that of gemm and gemm_gated
};

// Of the tile scheduler.
struct SchedulerParams {
  Division division;
  std::int32_t first_work_tile = 0;  // of the division, that of this launch
  std::int32_t end_work_tile = 0;
};

// Of all of them.
struct ProductSize {
  std::int64_t tokens = 0;
  std::int32_t sum_bytes = 0;  // hidden_size elements
  std::int32_t k_tiles = 0;
  std::int32_t intermediate_size = 0;
};

struct Params : LoadParams, EpilogueParams, ProductSize, SchedulerParams {};

}  // namespace gatefold::cuda::sm80
