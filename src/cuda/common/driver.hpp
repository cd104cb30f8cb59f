#pragma once

#include <cuda_runtime_api.h>

namespace gatefold::cuda {

// A function of the driver with the parameters that it had in a version, found through the runtime: nothing links
// against the driver. Where the driver has none, `function` stays as it is.
template <class Function>
void find_driver_function(const char* name, Function& function, unsigned version = 12000) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &result);
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) function = reinterpret_cast<Function>(entry);
}

}  // namespace gatefold::cuda
