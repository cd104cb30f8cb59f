#include "support/names.hpp"

namespace gatefold::test {

std::string name(gatefold_op op) {
  switch (op) {
    case GATEFOLD_OP_ACT_AND_MUL: return "act_and_mul";
    case GATEFOLD_OP_GEMM: return "gemm";
    case GATEFOLD_OP_GEMM_GATED: return "gemm_gated";
    case GATEFOLD_OP_GATE_UP: return "gate_up";
    case GATEFOLD_OP_MLP: return "mlp";
  }
  return "unknown";
}

std::string name(gatefold_dtype dtype) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP32: return "fp32";
    case GATEFOLD_DTYPE_FP16: return "fp16";
    case GATEFOLD_DTYPE_BF16: return "bf16";
  }
  return "unknown";
}

std::string name(gatefold_activation activation) {
  switch (activation) {
    case GATEFOLD_ACTIVATION_SILU: return "silu";
    case GATEFOLD_ACTIVATION_GELU_TANH: return "gelu_tanh";
    case GATEFOLD_ACTIVATION_GELU_ERF: return "gelu_erf";
    case GATEFOLD_ACTIVATION_RELU: return "relu";
    case GATEFOLD_ACTIVATION_SIGMOID: return "sigmoid";
    case GATEFOLD_ACTIVATION_IDENTITY: return "identity";
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: return "swiglu_clamped";
  }
  return "unknown";
}

std::string name(const Layout& layout) {
  switch (layout.kind()) {
    case GATEFOLD_LAYOUT_SEPARATE: return "separate";
    case GATEFOLD_LAYOUT_GATE_UP: return "gate_up";
    case GATEFOLD_LAYOUT_UP_GATE: return "up_gate";
    case GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP: return "interleaved_gate_up_" + std::to_string(layout.block());
    case GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE: return "interleaved_up_gate_" + std::to_string(layout.block());
  }
  return "unknown";
}

}  // namespace gatefold::test
