#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/status.hpp"

namespace gatefold {

// No struct of the interface will ever be larger: a struct_size beyond it was never set, and no byte is read by it.
constexpr std::size_t largest_struct = 4096;

// A struct of the C interface as its caller knows it: `given.struct_size` bytes of it may be read, and no more. Callers
// built with an older header know less, and what they don't know reads as zero; callers built with a newer one know
// more, and what this library doesn't know must be zero, since it can't do it. `older` holds the sizes that the struct
// had before it grew.
template <class Struct>
Status read_struct(const char* name, const Struct& given, std::span<const std::size_t> older, Struct& known) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  const std::size_t size = given.struct_size;
  if (size > largest_struct) {
    return invalid(name, ": struct_size ", size, " is more than any struct of the interface has, ", largest_struct);
  }
  if (size < sizeof(Struct) && std::ranges::find(older, size) == older.end()) {
    std::string sizes;
    for (const std::size_t known_size : older) sizes += concat(known_size, " or ");
    return invalid(name, ": struct_size ", size, " is none that it has had, expected ", sizes, sizeof(Struct));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      return invalid(name, ": struct_size ", size, " exceeds the ", sizeof(Struct),
                     " bytes that this library knows, and byte ", i, " is ", static_cast<int>(bytes[i]), ", not 0");
    }
  }
  known = Struct{};
  std::memcpy(&known, &given, std::min(size, sizeof(Struct)));
  known.struct_size = sizeof(Struct);
  return {};
}

}  // namespace gatefold
