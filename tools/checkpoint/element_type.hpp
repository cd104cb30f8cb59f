#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gatefold/gatefold.h"

namespace gatefold::checkpoint {

// A kind of element, as a safetensors header names it ("BF16").
struct ElementType {
  std::string_view name;
  std::int64_t bits = 0;

  // Elements of less than a byte need no alignment.
  std::size_t alignment() const { return bits < 8 ? 1 : static_cast<std::size_t>(bits / 8); }
  friend bool operator==(const ElementType& a, const ElementType& b) { return a.name == b.name; }
};

std::optional<ElementType> find_element_type(std::string_view name);
ElementType element_type(gatefold_dtype dtype);
std::optional<gatefold_dtype> gatefold_dtype_of(const ElementType& type);  // BF16, F16, F32

using Shape = std::vector<std::int64_t>;

std::string to_string(const Shape& shape);  // "[4096, 14336]"

// The bytes that a tensor takes, or nothing if they overflow, or do not end at a byte (types of 4 and 6 bits).
std::optional<std::uint64_t> tensor_bytes(const ElementType& type, const Shape& shape);

}  // namespace gatefold::checkpoint
