#pragma once

#include <cstddef>
#include <cstdint>

#include "gatefold/gatefold.h"
#include "gatefold/names.h"

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

constexpr const char* to_string(Op op) { return gatefold_name_of_op(static_cast<gatefold_op>(op)); }
constexpr const char* to_string(DType dtype) { return gatefold_name_of_dtype(static_cast<gatefold_dtype>(dtype)); }
constexpr const char* to_string(Device device) { return gatefold_name_of_device(static_cast<gatefold_device>(device)); }

constexpr const char* to_string(ActivationKind kind) {
  return kind == ActivationKind::none ? "none" : gatefold_name_of_activation(static_cast<gatefold_activation>(kind));
}

}  // namespace gatefold
