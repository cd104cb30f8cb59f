#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/device.hpp"
#include "cuda/sm90_decode/config.hpp"
#include "cuda/sm90_decode/division.hpp"

namespace gatefold::cuda::sm90_decode {

// A compiled kernel, and how to launch it on the current device.
struct Kernel {
  Config config;
  Status (*launch)(const Problem&, const Operands&, const DeviceProperties&, cudaStream_t);
  ResidentClusters (*resident_clusters)(const DeviceProperties&);
};

// Of one product, in the order of their tokens.
std::span<const Kernel> bf16_kernels(Product product);
std::span<const Kernel> fp16_kernels(Product product);

}  // namespace gatefold::cuda::sm90_decode
