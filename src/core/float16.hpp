#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/types.hpp"

// bf16 and fp16 as bit patterns, converted with round-to-nearest-even; NaN stays NaN, overflow becomes infinity.
namespace gatefold {

inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
  // Read the 15 bits as an fp32 whose exponent is 112 too small, and put that right with an exact product: this covers
  // subnormals too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

inline std::uint16_t float_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 1/2 makes the FPU round at 2^-24, a subnormal's last place
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

// Element i of an array of the given type.
inline double load(const std::byte* data, DType dtype, std::int64_t i) {
  if (dtype == DType::fp32) {
    float value;
    std::memcpy(&value, data + i * 4, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, data + i * 2, 2);
  return dtype == DType::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

// fp64 -> 16 bits must round once. Rounding to fp32 towards odd first keeps the second rounding right: fp32 has more
// than two bits to spare over either type (Boldo & Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
inline float round_to_odd(double value) {
  auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value) {
    // A finite value beyond fp32 becomes infinity, as it does in both 16-bit types.
    return nearest;
  }
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) nearest = std::nextafter(nearest, 0.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) | 1U);
}

inline void store(std::byte* data, DType dtype, std::int64_t i, double value) {
  if (dtype == DType::fp32) {
    const auto rounded = static_cast<float>(value);
    std::memcpy(data + i * 4, &rounded, 4);
    return;
  }
  const float odd = round_to_odd(value);
  const std::uint16_t bits = dtype == DType::bf16 ? float_to_bf16(odd) : float_to_fp16(odd);
  std::memcpy(data + i * 2, &bits, 2);
}

}  // namespace gatefold
