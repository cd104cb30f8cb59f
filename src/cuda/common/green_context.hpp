#pragma once

#include <cuda_runtime_api.h>

namespace gatefold::cuda {

// Whether a stream's kernels get the multiprocessors of a green context alone, fewer than the device has.
bool is_in_green_context(cudaStream_t stream);

}  // namespace gatefold::cuda
