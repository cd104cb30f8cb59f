#include "cuda/common/executor.hpp"

#include <string>
#include <utility>

namespace gatefold::cuda {
namespace {

Status check_capability(const DeviceProperties& device) {
  if (device.capability >= least_capability) return {};
  return unsupported("device: the tensors are on device ", device.index, " (", device.name, "), an sm_",
                     device.capability, "; Gatefold needs sm_", least_capability, " or newer");
}

class OnOneDevice final : public Executor {
 public:
  OnOneDevice(const Problem& problem, std::unique_ptr<Executor> steps) : problem_(problem), steps_(std::move(steps)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override { return steps_->workspace_size(max_tokens); }
  std::string describe(std::int64_t tokens) const override { return steps_->describe(tokens); }
  bool accepts(const Operands& operands) const override { return steps_->accepts(operands); }

  Status run(const Operands& operands) const override {
    const OwnerScope owner(problem_, operands);
    if (!owner.status().ok()) return owner.status();
    Operands located = operands;
    located.device = owner.device();
    return steps_->run(located);
  }

 private:
  Problem problem_;
  std::unique_ptr<Executor> steps_;
};

}  // namespace

OwnerScope::OwnerScope(const Problem& problem, const Operands& operands) : device_(operands.device) {
  if (device_ == Operands::unknown_device) enter(owner_device(problem, operands, device_));
}

OwnerScope::OwnerScope(std::span<const NamedPointer> tensors) : device_(Operands::unknown_device) {
  enter(owner_device(tensors, device_));
}

void OwnerScope::enter(Status found) {
  status_ = std::move(found);
  if (status_.ok()) status_ = check_capability(devices().list[static_cast<std::size_t>(device_)]);
  if (!status_.ok()) return;
  scope_.emplace(device_);
  status_ = scope_->status();
}

Status DeviceExecutor::run(const Operands& operands) const {
  const OwnerScope owner(problem_, operands);
  if (!owner.status().ok()) return owner.status();
  return launch(operands, devices().list[static_cast<std::size_t>(owner.device())],
                static_cast<cudaStream_t>(operands.stream));
}

std::unique_ptr<Executor> on_one_device(const Problem& problem, std::unique_ptr<Executor> steps) {
  return std::make_unique<OnOneDevice>(problem, std::move(steps));
}

}  // namespace gatefold::cuda
