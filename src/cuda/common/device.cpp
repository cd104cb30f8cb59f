#include "cuda/common/device.hpp"

#include <cuda.h>

#include <algorithm>

#include "cuda/common/driver.hpp"
#include "cuda/common/error.hpp"

namespace gatefold::cuda {
namespace {

std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

std::string why_no_device(cudaError_t error) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  if (error == cudaErrorInsufficientDriver) {
    return concat("the NVIDIA driver supports CUDA ", version_text(driver), ", this build needs ",
                  version_text(CUDART_VERSION));
  }
  if (error == cudaErrorNoDevice || error == cudaSuccess) return "the NVIDIA driver shows this process no GPU";
  return concat("the NVIDIA driver reports ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ")");
}

DeviceProperties properties_of(int index) {
  cudaDeviceProp raw{};
  if (cudaGetDeviceProperties(&raw, index) != cudaSuccess) return {.index = index, .name = "unknown"};
  return {.index = index,
          .name = raw.name,
          .capability = raw.major * 10 + raw.minor,
          .multiprocessors = raw.multiProcessorCount,
          .shared_memory_per_block = raw.sharedMemPerBlockOptin,
          .l2_bytes = static_cast<std::size_t>(raw.l2CacheSize),
          .memory_bytes = raw.totalGlobalMem};
}

Devices find_devices() {
  Devices found;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) count = 0;
  if (count == 0) found.why = why_no_device(error);
  for (int index = 0; index < count; ++index) found.list.push_back(properties_of(index));
  static_cast<void>(cudaGetLastError());  // a missing driver is no error of the caller's
  return found;
}

// The driver's functions for contexts.
struct ContextFunctions {
  decltype(&::cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease) release = nullptr;
  decltype(&::cuCtxPushCurrent) push = nullptr;
  decltype(&::cuCtxPopCurrent) pop = nullptr;

  bool found() const { return retain != nullptr && release != nullptr && push != nullptr && pop != nullptr; }
};

const ContextFunctions& contexts() {
  static const ContextFunctions found = [] {
    ContextFunctions functions;
    find_driver_function("cuDevicePrimaryCtxRetain", functions.retain);
    find_driver_function("cuDevicePrimaryCtxRelease", functions.release);
    find_driver_function("cuCtxPushCurrent", functions.push);
    find_driver_function("cuCtxPopCurrent", functions.pop);
    return functions;
  }();
  return found;
}

}  // namespace

const Devices& devices() {
  static const Devices found = find_devices();
  return found;
}

Verdict require_capability(int lowest, int highest, std::string reason) {
  const Devices& all = devices();
  if (all.list.empty()) return {false, concat("no CUDA device: ", all.why)};
  bool usable = false;
  for (const DeviceProperties& device : all.list) {
    if (device.capability < least_capability) continue;
    usable = true;
    if (device.capability < lowest || device.capability > highest) {
      return {false, concat("device ", device.index, " is an sm_", device.capability, ", needs sm_", lowest,
                            highest == no_upper_capability ? " or newer" : "")};
    }
  }
  if (!usable) {
    return {false, concat("device 0 is an sm_", all.list.front().capability, ", Gatefold needs sm_", least_capability,
                          " or newer")};
  }
  return {true, std::move(reason)};
}

Verdict require_shared_memory(std::size_t bytes, Verdict verdict) {
  if (!verdict.eligible) return verdict;
  for (const DeviceProperties& device : devices().list) {
    if (device.capability < least_capability || device.shared_memory_per_block >= bytes) continue;
    return {false, concat("device ", device.index, " gives a block ", device.shared_memory_per_block,
                          " bytes of shared memory, needs ", bytes)};
  }
  return verdict;
}

DeviceScope::DeviceScope(int device) {
  int current = 0;
  status_ = status_of(cudaGetDevice(&current), "cudaGetDevice", device);
  if (status_.ok() && current != device) status_ = enter(device);
  if (status_.ok()) {
    status_ =
        status_of(cudaThreadExchangeStreamCaptureMode(&capture_mode_), "cudaThreadExchangeStreamCaptureMode", device);
  }
}

DeviceScope::~DeviceScope() {
  if (status_.ok()) static_cast<void>(cudaThreadExchangeStreamCaptureMode(&capture_mode_));
  const ContextFunctions& functions = contexts();
  if (entered_ < 0 || !functions.found()) return;
  CUcontext context = nullptr;
  static_cast<void>(functions.pop(&context));
  static_cast<void>(functions.release(entered_));
}

Status DeviceScope::enter(int device) {
  const ContextFunctions& functions = contexts();
  if (!functions.found()) return {GATEFOLD_ERROR_DEVICE, "the driver has no functions for contexts"};
  CUcontext context = nullptr;
  CUresult error = functions.retain(&context, device);
  if (error == CUDA_SUCCESS) {
    error = functions.push(context);
    if (error != CUDA_SUCCESS) static_cast<void>(functions.release(device));
  }
  // The runtime's errors have the driver's numbers.
  if (error != CUDA_SUCCESS) return status_of(static_cast<cudaError_t>(error), "making a device current", device);
  entered_ = device;
  return {};
}

Status allow_shared_memory(OncePerDevice& once, const void* kernel, int bytes, int device) {
  return once(device, [&] {
    return status_of(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                     "cudaFuncSetAttribute(MaxDynamicSharedMemorySize)", device);
  });
}

}  // namespace gatefold::cuda
