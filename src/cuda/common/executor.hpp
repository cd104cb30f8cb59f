#pragma once

#include <memory>
#include <optional>

#include "core/implementation.hpp"
#include "cuda/common/device.hpp"
#include "cuda/common/owner.hpp"

namespace gatefold::cuda {

// The device that owns a run's tensors, found, held against what Gatefold needs, and current as long as this lives,
// whatever device was. Where Operands::device names it, all that has been done by whoever set it.
class OwnerScope {
 public:
  OwnerScope(const Problem& problem, const Operands& operands);
  explicit OwnerScope(std::span<const NamedPointer> tensors);

  const Status& status() const { return status_; }
  int device() const { return device_; }

 private:
  void enter(Status found);  // the owner, which device_ is then

  int device_;
  std::optional<DeviceScope> scope_;
  Status status_;
};

// What every CUDA implementation's run has in common: it works on the device that owns the pointers.
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

// The same as `steps`, whose tensors are all of `problem`: their device is found once for all steps.
std::unique_ptr<Executor> on_one_device(const Problem& problem, std::unique_ptr<Executor> steps);

}  // namespace gatefold::cuda
