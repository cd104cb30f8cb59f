#pragma once

#include <cuda_runtime_api.h>

namespace gatefold::bench {

// Launches a kernel of one warp that does nothing, with as many bytes of parameters as an sm90 kernel has.
void enqueue_empty_kernel(cudaStream_t stream);

}  // namespace gatefold::bench
