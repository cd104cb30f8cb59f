#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/types.hpp"
#include "numbers/float16.hpp"

// Elements of any type, loaded and stored.
namespace gatefold {

using numbers::bf16_to_float;
using numbers::float_to_bf16;
using numbers::float_to_fp16;
using numbers::fp16_to_float;

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
