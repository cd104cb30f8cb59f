#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/device.hpp"
#include "cuda/sm80/config.hpp"

namespace gatefold::cuda::sm80 {

// A compiled kernel: what it was built for, and how to enqueue one run of it on the current device. group_m: how many
// tiles of rows are swept together (see TileScheduler).
struct Kernel {
  Config config;
  Status (*launch)(const Problem& problem, const Operands& operands, int group_m, const DeviceProperties& device,
                   cudaStream_t stream);
};

}  // namespace gatefold::cuda::sm80
