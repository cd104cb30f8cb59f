#pragma once

#include <bit>
#include <cstdint>

#include "gatefold/gatefold.h"

// Elements as they lie in memory, converted to and from fp32 without branches on data, so that loops over them become
// vector code. Rounds to nearest even; overflow becomes infinity.
namespace gatefold::cli {

struct Fp32 {
  using Stored = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
  }
};

struct Fp16 {
  using Stored = std::uint16_t;

  // Read as an fp32 whose exponent is 112 too small: an exact product puts that right, subnormals included.
  static float load(std::uint16_t bits) {
    const std::uint32_t magnitude = bits & 0x7fffU;
    const float finite = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t special = 0x7f800000U | (magnitude << 13);
    const std::uint32_t value = magnitude >= 0x7c00U ? special : std::bit_cast<std::uint32_t>(finite);
    return std::bit_cast<float>(value | (std::uint32_t{bits & 0x8000U} << 16));
  }

  static std::uint16_t store(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
    // Below 2^-14 an added 1/2 makes the FPU round at 2^-24, the last place of a subnormal.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    std::uint32_t half = magnitude < 0x38800000U ? subnormal : normal;
    half = magnitude >= 0x477ff000U ? 0x7c00U : half;  // 65520 and more
    half = magnitude > 0x7f800000U ? 0x7e00U : half;   // NaN
    return static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000U));
  }
};

// Calls function(Element{}) with the element type's class.
template <class Function>
decltype(auto) with_element(gatefold_dtype dtype, Function&& function) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP16: return function(Fp16{});
    case GATEFOLD_DTYPE_BF16: return function(Bf16{});
    default: return function(Fp32{});
  }
}

}  // namespace gatefold::cli
