#include "dispatch/devices.hpp"

#include <cstdio>

#include "cpu/cpu_info.hpp"
#if GATEFOLD_WITH_CUDA
#include "cuda/common/device.hpp"
#endif

namespace gatefold {
namespace {

#if GATEFOLD_WITH_CUDA
int cuda_device_count(std::string& why) {
  why = cuda::devices().why;
  return static_cast<int>(cuda::devices().list.size());
}

gatefold_device_info cuda_device_info(int index) {
  const cuda::DeviceProperties& device = cuda::devices().list[static_cast<std::size_t>(index)];
  gatefold_device_info info{};
  std::snprintf(info.name, sizeof info.name, "%s", device.name.c_str());
  std::snprintf(info.features, sizeof info.features, "sm_%d", device.capability);
  info.threads = device.multiprocessors;
  info.memory_bytes = device.memory_bytes;
  return info;
}
#else
int cuda_device_count(std::string& why) {
  why = "this build has no CUDA back end";
  return 0;
}

gatefold_device_info cuda_device_info(int /*index*/) { return {}; }
#endif

}  // namespace

int device_count(Device device, std::string& why) {
  why.clear();
  if (device == Device::cpu) return 1;
  return cuda_device_count(why);
}

Status device_query(Device device, int index, gatefold_device_info& info) {
  std::string why;
  const int count = device_count(device, why);
  if (index < 0 || index >= count) {
    return invalid("index: ", index, " is not one of the ", count, " ", to_string(device), " devices",
                   why.empty() ? "" : ": ", why);
  }
  info = device == Device::cpu ? cpu::device_info() : cuda_device_info(index);
  return {};
}

}  // namespace gatefold
