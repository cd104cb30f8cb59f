#pragma once

#include <cuda_runtime_api.h>

#include "core/status.hpp"

namespace gatefold::cuda {

// Success, or GATEFOLD_ERROR_DEVICE with the names of what failed: "<doing>: device 1: cudaErrorInvalidValue (...)".
Status status_of(cudaError_t error, const char* doing, int device);

}  // namespace gatefold::cuda
