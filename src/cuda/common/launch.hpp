#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "cuda/common/error.hpp"

namespace gatefold::cuda {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  int shared_bytes = 0;
  int cluster = 0;           // blocks of a cluster; 0: the kernel knows of none
  bool early = false;        // may begin while the kernel before it ends: its code waits for that itself (EarlyLaunch)
  bool cooperative = false;  // all blocks are on the device at a time, and may wait for one another
};

// The runtime's description of a launch, which holds pointers into itself.
class LaunchConfig {
 public:
  LaunchConfig(const LaunchShape& shape, cudaStream_t stream) {
    config_.gridDim = shape.grid;
    config_.blockDim = shape.block;
    config_.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
    config_.stream = stream;
    config_.attrs = attributes_.data();
    if (shape.cluster > 0) {
      cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
    }
    if (shape.cooperative) {
      cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
    if (shape.early) {
      cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  std::array<cudaLaunchAttribute, 3> attributes_{};
  cudaLaunchConfig_t config_{};
};

// Enqueues a kernel on the current device, which `device` names for the message. cudaLaunchKernelEx returns this
// launch's own error; the <<<>>> form would leave it to cudaGetLastError, which may hold someone else's.
template <class... Parameters, class... Arguments>
Status launch_kernel(void (*kernel)(Parameters...), const LaunchShape& shape, int device, cudaStream_t stream,
                     const Arguments&... arguments) {
  const LaunchConfig config(shape, stream);
  return status_of(cudaLaunchKernelEx(config.get(), kernel, static_cast<Parameters>(arguments)...), "kernel launch",
                   device);
}

// Whether a kernel's code waits for the kernel before it (ptx::wait_for_previous_grid). That hangs not on the device
// but on the virtual architecture that the code in use was compiled for: a build for 8.0 runs on 9.0 without the wait.
inline bool waits_for_previous_grid(const cudaFuncAttributes& attributes) { return attributes.ptxVersion >= 90; }

// LaunchShape::early of one kernel, for a family that is compiled for whatever architectures the project names. Asked
// once per device. (A family for 9.0 alone has no code without the wait.)
class EarlyLaunch {
 public:
  template <class Kernel>
  Status operator()(Kernel* kernel, int device, bool& early) {
    const bool tracked = device >= 0 && device < static_cast<int>(known_.size());
    const Answer known = tracked ? known_[device].load(std::memory_order_relaxed) : Answer::unknown;
    early = known == Answer::yes;
    if (known != Answer::unknown) return {};
    cudaFuncAttributes attributes{};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error != cudaSuccess) return status_of(error, "cudaFuncGetAttributes", device);
    early = waits_for_previous_grid(attributes);
    if (tracked) known_[device].store(early ? Answer::yes : Answer::no, std::memory_order_relaxed);
    return {};
  }

 private:
  enum class Answer : std::uint8_t { unknown, no, yes };
  std::array<std::atomic<Answer>, 64> known_{};
};

// launch_kernel(), early if the kernel's code waits for the one before it.
template <auto kernel, class... Arguments>
Status launch_kernel_early(LaunchShape shape, int device, cudaStream_t stream, const Arguments&... arguments) {
  static EarlyLaunch early;
  if (Status status = early(kernel, device, shape.early); !status.ok()) return status;
  return launch_kernel(kernel, shape, device, stream, arguments...);
}

// How many clusters of one kernel a device holds at a time: not its multiprocessors over the cluster size, since a
// cluster stays within one GPC. Asked once per device, together with leave for the kernel's shared memory.
class ResidentClusters {
 public:
  template <class Kernel>
  Status operator()(Kernel* kernel, const LaunchShape& shape, int device, int& clusters) {
    const bool tracked = device >= 0 && device < static_cast<int>(known_.size());
    clusters = tracked ? known_[device].load(std::memory_order_relaxed) : 0;
    if (clusters > 0) return {};
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes);
    const LaunchConfig config(shape, nullptr);
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&clusters, kernel, config.get());
    if (error != cudaSuccess) return status_of(error, "preparing a kernel that runs in clusters", device);
    if (clusters < 1) return unsupported("device: ", device, " holds no cluster of ", shape.cluster, " blocks");
    if (tracked) known_[device].store(clusters, std::memory_order_relaxed);
    return {};
  }

 private:
  std::array<std::atomic<int>, 64> known_{};
};

}  // namespace gatefold::cuda
