#pragma once

#include <span>

#include "core/problem.hpp"
#include "core/status.hpp"

namespace gatefold::cuda {

// Memory that a run touches. null: it does not.
struct NamedPointer {
  const char* name;
  const void* data;
};

// The device whose memory a run's tensors are in. Fails, naming both, if two tensors are on different devices, and if
// one cannot be reached from a device. Managed and page-locked host memory can be reached from any; if there is nothing
// else, the current device is the owner.
Status owner_device(std::span<const NamedPointer> tensors, int& device);
Status owner_device(const Problem& problem, const Operands& operands, int& device);

}  // namespace gatefold::cuda
