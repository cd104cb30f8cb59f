#include "checkpoint/element_type.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace gatefold::checkpoint {
namespace {

// What version 0.8 of the official package accepts.
constexpr std::array<ElementType, 22> element_types{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

// Nothing on overflow.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

}  // namespace

std::optional<ElementType> find_element_type(std::string_view name) {
  const auto* found = std::ranges::find(element_types, name, &ElementType::name);
  if (found == element_types.end()) return std::nullopt;
  return *found;
}

ElementType element_type(gatefold_dtype dtype) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP32: return {"F32", 32};
    case GATEFOLD_DTYPE_FP16: return {"F16", 16};
    case GATEFOLD_DTYPE_BF16: break;
  }
  return {"BF16", 16};
}

std::optional<gatefold_dtype> gatefold_dtype_of(const ElementType& type) {
  for (const gatefold_dtype dtype : {GATEFOLD_DTYPE_FP32, GATEFOLD_DTYPE_FP16, GATEFOLD_DTYPE_BF16}) {
    if (element_type(dtype) == type) return dtype;
  }
  return std::nullopt;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::optional<std::uint64_t> tensor_bytes(const ElementType& type, const Shape& shape) {
  std::optional<std::uint64_t> bits = static_cast<std::uint64_t>(type.bits);
  for (const std::int64_t size : shape) {
    if (!bits || size < 0) return std::nullopt;
    bits = product(*bits, static_cast<std::uint64_t>(size));
  }
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

}  // namespace gatefold::checkpoint
