#pragma once

#include "cuda/sm90/kernels.hpp"

// One translation unit each, so that they compile side by side.
namespace gatefold::cuda::sm90 {

std::span<const Kernel> bf16_gated_kernels();
std::span<const Kernel> bf16_gated_by_memory_kernels();
std::span<const Kernel> bf16_gated_kernels_in_parts();
std::span<const Kernel> bf16_kernels_in_parts();
std::span<const Kernel> bf16_plain_kernels();
std::span<const Kernel> fp16_gated_kernels();
std::span<const Kernel> fp16_gated_by_memory_kernels();
std::span<const Kernel> fp16_gated_kernels_in_parts();
std::span<const Kernel> fp16_kernels_in_parts();
std::span<const Kernel> fp16_plain_kernels();

}  // namespace gatefold::cuda::sm90
