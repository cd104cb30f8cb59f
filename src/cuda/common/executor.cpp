#include "cuda/common/executor.hpp"

#include "cuda/common/owner.hpp"

namespace gatefold::cuda {

Status DeviceExecutor::run(const Operands& operands) const {
  int owner = 0;
  if (Status status = owner_device(problem_, operands, owner); !status.ok()) return status;
  const DeviceProperties& device = devices().list[owner];
  if (device.capability < least_capability) {
    return unsupported("device: the tensors are on device ", owner, " (", device.name, "), an sm_", device.capability,
                       "; Gatefold needs sm_", least_capability, " or newer");
  }
  const DeviceScope scope(owner);
  if (!scope.status().ok()) return scope.status();
  return launch(operands, device, static_cast<cudaStream_t>(operands.stream));
}

}  // namespace gatefold::cuda
