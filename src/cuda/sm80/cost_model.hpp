#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/problem.hpp"
#include "cuda/sm80/kernels.hpp"
#include "cuda/sm80/raster.hpp"

// Which kernel a run takes: pure host code.
namespace gatefold::cuda::sm80 {

struct Machine {
  int multiprocessors = 0;
  std::size_t shared_memory_per_block = 0;  // bytes, the most that a kernel may request
  int capability = 0;                       // 9.0 as 90
};

// Whether the machine runs a kernel: it holds its shared memory, and its code is for it.
bool runs_on(const Config& config, const Machine& machine);

// How the output of a run is divided on the machine, where its multiprocessors hold as many clusters as they could.
Division division_on(const Machine& machine, const Config& config, const Problem& problem, std::int64_t tokens);

// Seconds that a run should take, to compare kernels with: each multiprocessor multiplies the tiles that fall to it at
// its share of the kernel's rate.
double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine);

// The kernel of least estimated time among those that fit the layout and run on the machine, the first of equals; or
// null.
const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine);

}  // namespace gatefold::cuda::sm80
