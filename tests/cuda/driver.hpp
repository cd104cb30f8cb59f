#pragma once

#include <cuda.h>

#include "cuda_support.hpp"

namespace gatefold::test {

// The driver's functions, where the runtime has none, with the parameters that they had in a version.
template <class Function>
Function driver_function(const char* name, unsigned version = 12000) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result{};
  require(cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &result), name);
  if (entry == nullptr) throw std::runtime_error(std::string(name) + ": the driver has no such function");
  return reinterpret_cast<Function>(entry);
}
inline void require_driver(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(what) + ": error " + std::to_string(result));
}

}  // namespace gatefold::test
