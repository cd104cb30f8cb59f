#pragma once

#include <bit>
#include <cstdint>

// bf16 and fp16 as bit patterns, converted with round-to-nearest-even; NaN stays NaN, overflow becomes infinity.
// Without branches on the value, so that loops over them become vector code.
namespace gatefold::numbers {

[[gnu::always_inline]] inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

[[gnu::always_inline]] inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

// Read as an fp32 whose exponent is 112 too small: an exact product puts that right, subnormals included.
[[gnu::always_inline]] inline float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffU;
  const float finite = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t special = 0x7f800000U | (magnitude << 13);
  const std::uint32_t value = magnitude >= 0x7c00U ? special : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(value | (std::uint32_t{bits & 0x8000U} << 16));
}

[[gnu::always_inline]] inline std::uint16_t float_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  // Below 2^-14 an added 1/2 makes the FPU round at 2^-24, the last place of a subnormal.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  std::uint32_t rounded = magnitude < 0x38800000U ? subnormal : normal;
  rounded = magnitude >= 0x477ff000U ? 0x7c00U : rounded;  // 65520 and more round to infinity
  rounded = magnitude > 0x7f800000U ? 0x7e00U : rounded;   // NaN
  return static_cast<std::uint16_t>(rounded | ((bits >> 16) & 0x8000U));
}

}  // namespace gatefold::numbers
