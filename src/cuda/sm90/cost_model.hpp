#pragma once

#include <span>

#include "core/problem.hpp"
#include "cuda/sm90/kernels.hpp"

// Which kernel a run takes: pure host code.
namespace gatefold::cuda::sm90 {

struct Machine {
  int multiprocessors;
  double bytes_per_second;
};

Machine machine_of(const DeviceProperties& device);

// Can the copy engine bring this layout in tiles of the config? In boxes of 8 rows or a multiple.
bool fits_layout(const Config& config, const Problem& problem);

// Seconds that a run should take, to compare kernels with: rounds of tiles, each at the kernel's rate, or the bytes
// that must be moved, or the boxes they come in, whichever takes longest, and what of the rest is exposed.
double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine);

// The kernel of least estimated time among those that fit, or null.
const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine);

}  // namespace gatefold::cuda::sm90
