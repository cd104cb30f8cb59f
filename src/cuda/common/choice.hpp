#pragma once

#include <span>

namespace gatefold::cuda {

// The kernel of least seconds(kernel) among those that fits(kernel) takes, the first of equals; or null.
template <class Kernel, class Fits, class Seconds>
const Kernel* fastest(std::span<const Kernel> kernels, Fits fits, Seconds seconds) {
  const Kernel* best = nullptr;
  double least = 0.0;
  for (const Kernel& kernel : kernels) {
    if (!fits(kernel)) continue;
    const double estimate = seconds(kernel);
    if (best == nullptr || estimate < least) {
      best = &kernel;
      least = estimate;
    }
  }
  return best;
}

}  // namespace gatefold::cuda
