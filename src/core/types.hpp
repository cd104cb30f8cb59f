#pragma once

#include <cstddef>
#include <cstdint>

#include "gatefold/gatefold.h"

// The enums of the public header under their internal names, and what is known about each value.
namespace gatefold {

enum class Op : std::uint8_t {
  act_and_mul = GATEFOLD_OP_ACT_AND_MUL,
  gemm = GATEFOLD_OP_GEMM,
  gemm_gated = GATEFOLD_OP_GEMM_GATED,
  gate_up = GATEFOLD_OP_GATE_UP,
  mlp = GATEFOLD_OP_MLP,
};

enum class DType : std::uint8_t {
  fp32 = GATEFOLD_DTYPE_FP32,
  fp16 = GATEFOLD_DTYPE_FP16,
  bf16 = GATEFOLD_DTYPE_BF16,
};

enum class Device : std::uint8_t {
  cpu = GATEFOLD_DEVICE_CPU,
  cuda = GATEFOLD_DEVICE_CUDA,
};

enum class ActivationKind : std::uint8_t {
  none = 0,
  silu = GATEFOLD_ACTIVATION_SILU,
  gelu_tanh = GATEFOLD_ACTIVATION_GELU_TANH,
  gelu_erf = GATEFOLD_ACTIVATION_GELU_ERF,
  relu = GATEFOLD_ACTIVATION_RELU,
  sigmoid = GATEFOLD_ACTIVATION_SIGMOID,
  identity = GATEFOLD_ACTIVATION_IDENTITY,
  swiglu_clamped = GATEFOLD_ACTIVATION_SWIGLU_CLAMPED,
};

// The parameters matter to swiglu_clamped only.
struct Activation {
  ActivationKind kind = ActivationKind::none;
  float limit = 0.0F;
  float alpha = 0.0F;
  float beta = 0.0F;
};

constexpr std::int64_t size_of(DType dtype) { return dtype == DType::fp32 ? 4 : 2; }

constexpr const char* to_string(Op op) {
  switch (op) {
    case Op::act_and_mul: return "act_and_mul";
    case Op::gemm: return "gemm";
    case Op::gemm_gated: return "gemm_gated";
    case Op::gate_up: return "gate_up";
    case Op::mlp: return "mlp";
  }
  return "?";
}

constexpr const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::fp32: return "fp32";
    case DType::fp16: return "fp16";
    case DType::bf16: return "bf16";
  }
  return "?";
}

constexpr const char* to_string(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

constexpr const char* to_string(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::none: return "none";
    case ActivationKind::silu: return "silu";
    case ActivationKind::gelu_tanh: return "gelu_tanh";
    case ActivationKind::gelu_erf: return "gelu_erf";
    case ActivationKind::relu: return "relu";
    case ActivationKind::sigmoid: return "sigmoid";
    case ActivationKind::identity: return "identity";
    case ActivationKind::swiglu_clamped: return "swiglu_clamped";
  }
  return "?";
}

}  // namespace gatefold
