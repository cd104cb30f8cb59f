#pragma once

#include "cuda/sm90/kernels.hpp"

// Kernels beside those that every problem chooses among. One translation unit each, so that they compile side by side.
namespace gatefold::cuda::sm90 {

// gate_up with a factor for each token (row_scale.cuh): of problems that have one, whose weights are settled.
std::span<const Kernel> bf16_row_scale_kernels();
std::span<const Kernel> fp16_row_scale_kernels();

// gemm with divided sums, where a product has few tiles.
std::span<const Kernel> bf16_divided_plain_kernels();
std::span<const Kernel> fp16_divided_plain_kernels();
// The same for settled weights.
std::span<const Kernel> bf16_settled_divided_plain_kernels();
std::span<const Kernel> fp16_settled_divided_plain_kernels();

// gemm that adds up the parts of its sums one after the other, of batch-invariant problems.
std::span<const Kernel> bf16_adding_kernels();
std::span<const Kernel> fp16_adding_kernels();

inline std::span<const Kernel> adding_kernels_of(DType dtype) {
  if (dtype == DType::fp32) return {};
  return dtype == DType::bf16 ? bf16_adding_kernels() : fp16_adding_kernels();
}
inline std::span<const Kernel> row_scale_kernels_of(DType dtype) {
  if (dtype == DType::fp32) return {};
  return dtype == DType::bf16 ? bf16_row_scale_kernels() : fp16_row_scale_kernels();
}
inline std::span<const Kernel> divided_plain_kernels_of(DType dtype, bool weights_settled) {
  if (dtype == DType::fp32) return {};
  if (weights_settled) {
    return dtype == DType::bf16 ? bf16_settled_divided_plain_kernels() : fp16_settled_divided_plain_kernels();
  }
  return dtype == DType::bf16 ? bf16_divided_plain_kernels() : fp16_divided_plain_kernels();
}

}  // namespace gatefold::cuda::sm90
