#pragma once

#include <cstring>

namespace gatefold {

// The number in an enum of the C interface. A C caller may have put any int there, which C++ must not read as the enum.
template <class Enum>
int enum_number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace gatefold
