#include "dispatch/devices.hpp"

#include "cpu/cpu_info.hpp"

namespace gatefold {

int device_count(Device device, std::string& why) {
  why.clear();
  if (device == Device::cpu) return 1;
  if (device == Device::cuda) {
    why = "this build has no CUDA back end";
    return 0;
  }
  why = concat("device: ", static_cast<int>(device), " is not a gatefold_device (1 or 2)");
  return 0;
}

Status device_query(Device device, int index, gatefold_device_info& info) {
  std::string why;
  const int count = device_count(device, why);
  if (index < 0 || index >= count) {
    return invalid("index: ", index, " is not one of the ", count, " ", to_string(device), " devices",
                   why.empty() ? "" : ": ", why);
  }
  info = cpu::device_info();
  return {};
}

}  // namespace gatefold
