#pragma once

#include <span>

#include "core/implementation.hpp"

namespace gatefold {

// The implementations of an op on a device, best first. The last takes everything: the reference on the CPU, `simt` on
// CUDA devices (mlp is `composed` of the others there). For a device that is not in this build the list is empty.
std::span<const Implementation* const> implementations(Op op, Device device);

}  // namespace gatefold
