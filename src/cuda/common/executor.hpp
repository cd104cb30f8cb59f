#pragma once

#include "core/implementation.hpp"
#include "cuda/common/device.hpp"

namespace gatefold::cuda {

// What every CUDA implementation's run has in common: find the device that owns the pointers, work there whatever
// device is current, leave the current one as it was.
class DeviceExecutor : public Executor {
 public:
  explicit DeviceExecutor(const Problem& problem) : problem_(problem) {}

  std::size_t workspace_size(std::int64_t /*max_tokens*/) const override { return 0; }
  Status run(const Operands& operands) const final;

 protected:
  const Problem& problem() const { return problem_; }

 private:
  // The device is current and sm_80 or newer. Enqueues; never waits.
  virtual Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const = 0;

  Problem problem_;
};

}  // namespace gatefold::cuda
