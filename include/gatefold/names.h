// The names of gatefold.h's enums as messages, results and the command line write them: "gate_up", "bf16", "silu". Of a
// number that is none of an enum's they are "?".
#ifndef GATEFOLD_NAMES_H
#define GATEFOLD_NAMES_H

#include "gatefold/gatefold.h"

#ifdef __cplusplus
#define GATEFOLD_INLINE_NAME constexpr
#else
#define GATEFOLD_INLINE_NAME static inline
#endif

GATEFOLD_INLINE_NAME const char* gatefold_name_of_op(gatefold_op op) {
  switch (op) {
    case GATEFOLD_OP_ACT_AND_MUL: return "act_and_mul";
    case GATEFOLD_OP_GEMM: return "gemm";
    case GATEFOLD_OP_GEMM_GATED: return "gemm_gated";
    case GATEFOLD_OP_GATE_UP: return "gate_up";
    case GATEFOLD_OP_MLP: return "mlp";
  }
  return "?";
}

GATEFOLD_INLINE_NAME const char* gatefold_name_of_dtype(gatefold_dtype dtype) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP32: return "fp32";
    case GATEFOLD_DTYPE_FP16: return "fp16";
    case GATEFOLD_DTYPE_BF16: return "bf16";
  }
  return "?";
}

GATEFOLD_INLINE_NAME const char* gatefold_name_of_device(gatefold_device device) {
  switch (device) {
    case GATEFOLD_DEVICE_CPU: return "cpu";
    case GATEFOLD_DEVICE_CUDA: return "cuda";
  }
  return "?";
}

GATEFOLD_INLINE_NAME const char* gatefold_name_of_layout(gatefold_layout layout) {
  switch (layout) {
    case GATEFOLD_LAYOUT_SEPARATE: return "separate";
    case GATEFOLD_LAYOUT_GATE_UP: return "gate_up";
    case GATEFOLD_LAYOUT_UP_GATE: return "up_gate";
    case GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP: return "interleaved_gate_up";
    case GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE: return "interleaved_up_gate";
  }
  return "?";
}

GATEFOLD_INLINE_NAME const char* gatefold_name_of_activation(gatefold_activation activation) {
  switch (activation) {
    case GATEFOLD_ACTIVATION_SILU: return "silu";
    case GATEFOLD_ACTIVATION_GELU_TANH: return "gelu_tanh";
    case GATEFOLD_ACTIVATION_GELU_ERF: return "gelu_erf";
    case GATEFOLD_ACTIVATION_RELU: return "relu";
    case GATEFOLD_ACTIVATION_SIGMOID: return "sigmoid";
    case GATEFOLD_ACTIVATION_IDENTITY: return "identity";
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: return "swiglu_clamped";
  }
  return "?";
}

#endif
