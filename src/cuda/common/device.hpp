#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/implementation.hpp"
#include "core/status.hpp"

namespace gatefold::cuda {

// Compute capability 8.0 as 80, 9.0 as 90.
constexpr int least_capability = 80;
constexpr int no_upper_capability = std::numeric_limits<int>::max();

struct DeviceProperties {
  int index = 0;
  std::string name;
  int capability = 0;
  int multiprocessors = 0;
  std::size_t shared_memory_per_block = 0;  // the most that a kernel may request
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
};

// The devices that the driver shows this process, or why there are none. Asked once; creates no context.
struct Devices {
  std::vector<DeviceProperties> list;
  std::string why;
};
const Devices& devices();

// A plan is not tied to a device: the pointers of each run decide. So a family of kernels is eligible when every device
// that Gatefold can use here (8.0 and newer) has a capability in [lowest, highest]. `reason` is kept for the eligible.
Verdict require_capability(int lowest, int highest, std::string reason);

// The verdict, unless some device that Gatefold can use here gives a block fewer bytes of shared memory.
Verdict require_shared_memory(std::size_t bytes, Verdict verdict);

// Makes a device current, and what was before it again at the end: its primary context is pushed onto the thread's
// stack and popped. cudaSetDevice would make a context on a device that the caller never used, and would not bring back
// a context that isn't primary. Meanwhile the calling thread's stream captures are relaxed: the first launch of a
// kernel may load it, which a capture would otherwise forbid though it records nothing.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope();

  const Status& status() const { return status_; }

 private:
  Status enter(int device);

  int entered_ = -1;  // -1: the device was current
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeRelaxed;
  Status status_;
};

// Does something once per device, such as raising a kernel's shared memory limit: such attributes belong to a device's
// context, not to the process. The action may run twice if two threads arrive together, so it must be repeatable.
class OncePerDevice {
 public:
  template <class Action>
  Status operator()(int device, Action action) {
    const bool tracked = device >= 0 && device < static_cast<int>(done_.size());
    if (tracked && done_[device].load(std::memory_order_acquire)) return {};
    Status status = action();
    if (tracked && status.ok()) done_[device].store(true, std::memory_order_release);
    return status;
  }

 private:
  std::array<std::atomic<bool>, 64> done_{};
};

// Lets a kernel request `bytes` of dynamic shared memory on a device. `once` is the kernel's own.
Status allow_shared_memory(OncePerDevice& once, const void* kernel, int bytes, int device);

}  // namespace gatefold::cuda
