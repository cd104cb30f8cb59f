#pragma once

#include <cuda_runtime.h>

#include "core/status.hpp"
#include "cuda/common/error.hpp"

namespace gatefold::cuda {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  int shared_bytes = 0;
};

// Enqueues a kernel on the current device, which `device` names for the message. cudaLaunchKernelEx returns this
// launch's own error; the <<<>>> form would leave it to cudaGetLastError, which may hold someone else's.
template <class... Parameters, class... Arguments>
Status launch_kernel(void (*kernel)(Parameters...), const LaunchShape& shape, int device, cudaStream_t stream,
                     const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.stream = stream;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "kernel launch", device);
}

}  // namespace gatefold::cuda
