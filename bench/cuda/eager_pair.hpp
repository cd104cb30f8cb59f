#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include <gatefold/gatefold.h>

// What a framework runs that fuses nothing: silu into memory, then a product from memory. Both kernels work on
// contiguous tensors of a multiple of 16 bytes, with 16-byte accesses, so that the pair loses by its bytes alone.
namespace gatefold::bench {

void eager_silu(gatefold_dtype dtype, const void* gate, void* activated, std::int64_t elements, cudaStream_t stream);
void eager_multiply(gatefold_dtype dtype, const void* activated, const void* up, void* out, std::int64_t elements,
                    cudaStream_t stream);

}  // namespace gatefold::bench
