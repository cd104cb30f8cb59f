#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/device.hpp"

namespace gatefold::cuda {

// act_and_mul element by element: any layout, any stride, any element-aligned pointer.
Status act_and_mul_by_elements(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                               cudaStream_t stream);

}  // namespace gatefold::cuda
