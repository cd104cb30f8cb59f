#pragma once

#include <string>

#include "core/status.hpp"
#include "core/types.hpp"

namespace gatefold {

// How many devices of a kind there are; `why` says what is missing where there are none.
int device_count(Device device, std::string& why);

Status device_query(Device device, int index, gatefold_device_info& info);

}  // namespace gatefold
