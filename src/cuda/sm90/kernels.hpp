#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/device.hpp"
#include "cuda/sm90/config.hpp"

namespace gatefold::cuda::sm90 {

// A compiled kernel: what it was built for, how fast it multiplies when it has enough to do, and how to enqueue one run
// of it on the current device.
struct Kernel {
  Config config;
  double teraflops;  // of a whole H200 while its tiles multiply, settled (cost_model.cpp)
  Status (*launch)(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                   cudaStream_t stream);
  // How many of its clusters the device, which is the current one, holds at a time.
  Status (*resident_clusters)(const DeviceProperties& device, int& clusters);
};

// Those of a product for a 16-bit type.
std::span<const Kernel> kernels(DType dtype, Product product);

}  // namespace gatefold::cuda::sm90
