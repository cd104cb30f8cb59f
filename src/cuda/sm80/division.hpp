#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/sm80/config.hpp"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {

// How the output of a run is divided for a device that holds so many clusters of the kernel's blocks at a time.
Division divide(const Config& config, const Problem& problem, std::int64_t tokens, std::int64_t resident);

}  // namespace gatefold::cuda::sm80
