#pragma once

#include <cuda_runtime_api.h>

#include "core/status.hpp"

// One kernel that doubles, launched as the library launches what is compiled for the project's architectures: code for
// 8.0, which a 9.0 translates and runs without a wait for the kernel before it, and code for 9.0.
namespace gatefold::test {

namespace of_80 {
bool waits();
Status enqueue(const float* in, float* out, int count, int device, cudaStream_t stream);
}  // namespace of_80

namespace of_90 {
bool waits();
Status enqueue(const float* in, float* out, int count, int device, cudaStream_t stream);
}  // namespace of_90

}  // namespace gatefold::test
