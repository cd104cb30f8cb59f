#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.hpp"

// Loops over contiguous elements in single precision, eight or sixteen at a time where the CPU has AVX2 or AVX-512
// (chosen at run time), with a portable copy of each. `out` may be the same memory as an input, element for element.
namespace gatefold::cpu {

// fp32, fp16 or bf16 -> fp32.
void widen(const std::byte* in, DType dtype, std::int64_t count, float* out);

// fp32 -> fp32, fp16 or bf16, to nearest even. `out` may begin where `in` does.
void narrow(const float* in, DType dtype, std::int64_t count, std::byte* out);

// out = act(gate); for swiglu_clamped g' * sigma(alpha g').
void activate(const Activation& activation, const float* gate, std::int64_t count, float* out);

// out = activated * up; for swiglu_clamped activated * (u' + beta).
void multiply(const Activation& activation, const float* activated, const float* up, std::int64_t count, float* out);

}  // namespace gatefold::cpu
