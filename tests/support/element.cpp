#include "support/element.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace gatefold::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::uint16_t fp16_bits(double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x1p-14) return static_cast<std::uint16_t>(sign | static_cast<unsigned>(magnitude * 0x1p24));
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<unsigned>(std::ldexp(magnitude, 10 - exponent)) - 1024U;
  return static_cast<std::uint16_t>(sign | static_cast<unsigned>(exponent + 15) << 10 | fraction);
}

double fp16_value(std::uint16_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * infinity : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * fraction * 0x1p-24;
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Every pattern's value: tests decode some of them millions of times.
const std::array<double, 65536>& fp16_values() {
  static const auto values = [] {
    std::array<double, 65536> table{};
    for (unsigned bits = 0; bits < table.size(); ++bits) table[bits] = fp16_value(static_cast<std::uint16_t>(bits));
    return table;
  }();
  return values;
}

}  // namespace

Format format_of(gatefold_dtype dtype) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP16: return {2, 11, -14, 65504.0};
    case GATEFOLD_DTYPE_BF16: return {2, 8, -126, 0x1.fep127};
    case GATEFOLD_DTYPE_FP32: break;
  }
  return {4, 24, -126, 0x1.fffffep127};
}

double round_to(gatefold_dtype dtype, double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const Format format = format_of(dtype);
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double last_place = std::ldexp(1.0, exponent - format.significand_bits + 1);
  const double rounded = std::nearbyint(value / last_place) * last_place;
  return std::abs(rounded) > format.largest ? std::copysign(infinity, value) : rounded;
}

void encode(gatefold_dtype dtype, double value, std::byte* to) {
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == GATEFOLD_DTYPE_FP32) {
    std::memcpy(to, &single, 4);
    return;
  }
  const std::uint16_t bits = dtype == GATEFOLD_DTYPE_BF16 ? static_cast<std::uint16_t>(single >> 16) : fp16_bits(value);
  std::memcpy(to, &bits, 2);
}

double decode(gatefold_dtype dtype, const std::byte* from) {
  std::uint32_t single = 0;
  std::uint16_t bits = 0;
  if (dtype == GATEFOLD_DTYPE_FP32) {
    std::memcpy(&single, from, 4);
    return std::bit_cast<float>(single);
  }
  std::memcpy(&bits, from, 2);
  if (dtype == GATEFOLD_DTYPE_FP16) return fp16_values()[bits];
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace gatefold::test
