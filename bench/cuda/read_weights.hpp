#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gatefold::bench {

// Reads bytes (a multiple of 16) once and does nothing with them: the least time that a product with few tokens can
// take. `sink` is written to if they are all the same odd pattern, which the compiler can't know that they aren't.
void read_weights(const void* weights, std::size_t bytes, void* sink, cudaStream_t stream);

}  // namespace gatefold::bench
