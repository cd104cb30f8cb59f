#pragma once

#include "core/implementation.hpp"

// The CUDA implementations, for the lists of src/dispatch.
namespace gatefold::cuda {}  // namespace gatefold::cuda
