#pragma once

#include <array>
#include <string>

#include "support/public_types.hpp"

// What there is to test, and what to call it in a test's name.
namespace gatefold::test {

inline constexpr std::array all_dtypes{GATEFOLD_DTYPE_FP32, GATEFOLD_DTYPE_FP16, GATEFOLD_DTYPE_BF16};

// swiglu_clamped's limit lies well inside the data, so that both clamps bite.
inline constexpr std::array all_activations{Activation::silu(),
                                            Activation::gelu_tanh(),
                                            Activation::gelu_erf(),
                                            Activation::relu(),
                                            Activation::sigmoid(),
                                            Activation::identity(),
                                            Activation::swiglu_clamped(0.8F, 1.702F, 1.0F)};

std::string name(gatefold_op op);
std::string name(gatefold_dtype dtype);
std::string name(gatefold_activation activation);
std::string name(const Layout& layout);

inline bool uses_layout(gatefold_op op) {
  return op == GATEFOLD_OP_ACT_AND_MUL || op == GATEFOLD_OP_GATE_UP || op == GATEFOLD_OP_MLP;
}
inline bool uses_activation(gatefold_op op) { return op != GATEFOLD_OP_GEMM; }

}  // namespace gatefold::test
