#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/device.hpp"
#include "cuda/sm80/config.hpp"

namespace gatefold::cuda::sm80 {

// A compiled kernel: what it was built for, how fast it multiplies when it has enough to do, and how to enqueue one run
// of it on the current device.
struct Kernel {
  Config config;
  double teraflops;  // of a whole H200, sustained (docs/kernels/sm80.md): to be compared within an op and element type
  Status (*launch)(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                   cudaStream_t stream);
};

// One translation unit each, so that they compile side by side.
std::span<const Kernel> tall_bf16_kernels();
std::span<const Kernel> tall_fp16_kernels();
std::span<const Kernel> large_bf16_kernels();
std::span<const Kernel> large_fp16_kernels();
std::span<const Kernel> small_bf16_kernels();
std::span<const Kernel> small_fp16_kernels();
std::span<const Kernel> fp32_kernels();

// All that is compiled for an op and element type, with one way of gating.
std::vector<Kernel> kernels(Op op, DType dtype, Gating gating);

}  // namespace gatefold::cuda::sm80
