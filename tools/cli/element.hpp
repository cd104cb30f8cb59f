#pragma once

#include <cstdint>

#include "gatefold/gatefold.h"
#include "numbers/float16.hpp"

// Elements as they lie in memory, converted to and from fp32.
namespace gatefold::cli {

struct Fp32 {
  using Stored = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

struct Bf16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t bits) { return numbers::bf16_to_float(bits); }
  static std::uint16_t store(float value) { return numbers::float_to_bf16(value); }
};

struct Fp16 {
  using Stored = std::uint16_t;
  static float load(std::uint16_t bits) { return numbers::fp16_to_float(bits); }
  static std::uint16_t store(float value) { return numbers::float_to_fp16(value); }
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
