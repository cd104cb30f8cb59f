// The operations on tensors, as implementations of the schemas in gatefold/torch/_library.py. Through torch's stable
// ABI alone: nothing here knows a version of torch or of Python. Differentiation, autocast and shapes of tensors
// without data are Python's.
#include <torch/csrc/stable/library.h>

#include <stdexcept>

#include "call.hpp"

namespace gatefold_torch {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::runtime_error(message); }

std::span<const int64_t> tokens_of(const char* name, const Tensor& tensor) {
  const auto sizes = sizes_of(tensor);
  if (sizes.empty()) refuse(std::string(name) + ": shape [], but rows want at least 1 dimension");
  return sizes.first(sizes.size() - 1);
}

void require_matrix(const char* name, const Tensor& tensor) {
  if (tensor.dim() != 2) {
    refuse(std::string(name) + ": shape " + text(sizes_of(tensor)) + " of " + std::to_string(tensor.dim()) +
           " dimensions, but a weight has 2");
  }
}

// `up` has to be there in the separate layout alone.
void require_halves(const OptionalTensor& up, gatefold_layout layout) {
  if (layout == GATEFOLD_LAYOUT_SEPARATE && !up) refuse("up: None, but layout 'separate' has two tensors");
  if (layout != GATEFOLD_LAYOUT_SEPARATE && up) refuse("up: a tensor, but a packed layout has both halves in gate");
}

int64_t half(int64_t length, gatefold_layout layout) {
  if (layout == GATEFOLD_LAYOUT_SEPARATE) return length;
  if (length % 2 != 0) {
    refuse("gate: " + std::to_string(length) + " of gate and up together, but a packed layout has as many of each");
  }
  return length / 2;
}

Sizes with(std::span<const int64_t> tokens, int64_t columns) {
  Sizes sizes(tokens.begin(), tokens.end());
  sizes.push_back(columns);
  return sizes;
}

std::string shaped(const char* name, const Tensor& tensor) {
  return std::string(name) + " of shape " + text(sizes_of(tensor));
}

// x, and the weights of gate and up, which gate_up and mlp have alike. Returns F.
int64_t set_weights(Call& call, Tensor& x, Tensor& gate, OptionalTensor& up, OptionalTensor& gate_bias,
                    OptionalTensor& up_bias) {
  tokens_of("x", x);
  require_matrix("gate", gate);
  require_halves(up, call.layout());
  const int64_t hidden_size = sizes_of(x).back();
  const int64_t rows = sizes_of(gate)[0];
  if (sizes_of(gate)[1] != hidden_size) require_sizes("gate", gate, {rows, hidden_size}, shaped("x", x));
  const int64_t intermediate_size = half(rows, call.layout());
  call.set_sizes(hidden_size, intermediate_size);
  call.set_x("x", x);
  call.set_gate("gate", gate);
  if (up) {
    require_sizes("up", *up, {rows, hidden_size}, "gate");
    call.set_up("up", *up);
  } else if (up_bias) {
    refuse("up_bias: a tensor, but a packed layout has both halves' biases in gate_bias");
  }
  call.set_gate_bias("gate_bias", gate_bias, rows);
  call.set_up_bias("up_bias", up_bias, rows);
  return intermediate_size;
}

// x and the weight that gemm and gemm_gated have alike. Returns its rows.
int64_t set_weight(Call& call, Tensor& x, Tensor& weight, OptionalTensor& bias) {
  tokens_of("x", x);
  require_matrix("weight", weight);
  const int64_t hidden_size = sizes_of(x).back();
  const int64_t rows = sizes_of(weight)[0];
  if (sizes_of(weight)[1] != hidden_size) require_sizes("weight", weight, {rows, hidden_size}, shaped("x", x));
  call.set_sizes(hidden_size, rows);
  call.set_x("x", x);
  call.set_up("weight", weight);
  call.set_up_bias("bias", bias, rows);
  return rows;
}

Tensor act_and_mul(const Tensor* out, Tensor gate, OptionalTensor up, const std::string& how) {
  Call call(GATEFOLD_OP_ACT_AND_MUL, "gate", gate, how);
  const Tensor shape = gate;  // gate itself may become a copy
  const auto tokens = tokens_of("gate", shape);
  require_halves(up, call.layout());
  const int64_t columns = half(sizes_of(shape).back(), call.layout());
  call.set_sizes(0, columns);
  call.set_gate("gate", gate);
  if (up) {
    require_sizes("up", *up, with(tokens, columns), "gate");
    call.set_up("up", *up);
  }
  return call.run(tokens, columns, out);
}

Tensor gemm(const Tensor* out, Tensor x, Tensor weight, OptionalTensor bias, const std::string& how) {
  Call call(GATEFOLD_OP_GEMM, "x", x, how);
  const Tensor shape = x;
  const int64_t rows = set_weight(call, x, weight, bias);
  return call.run(tokens_of("x", shape), rows, out);
}

Tensor gemm_gated(const Tensor* out, Tensor x, Tensor gate, Tensor weight, OptionalTensor bias,
                  const std::string& how) {
  Call call(GATEFOLD_OP_GEMM_GATED, "x", x, how);
  const Tensor shape = x;
  const int64_t rows = set_weight(call, x, weight, bias);
  const auto tokens = tokens_of("x", shape);
  require_sizes("gate", gate, with(tokens, rows), shaped("x", shape) + " with " + shaped("weight", weight));
  call.set_gate("gate", gate);
  return call.run(tokens, rows, out);
}

Tensor gate_up(const Tensor* out, Tensor x, Tensor gate, OptionalTensor up, OptionalTensor gate_bias,
               OptionalTensor up_bias, const std::string& how) {
  Call call(GATEFOLD_OP_GATE_UP, "x", x, how);
  const Tensor shape = x;
  const int64_t columns = set_weights(call, x, gate, up, gate_bias, up_bias);
  return call.run(tokens_of("x", shape), columns, out);
}

Tensor mlp(const Tensor* out, Tensor x, Tensor gate, OptionalTensor up, Tensor down, OptionalTensor gate_bias,
           OptionalTensor up_bias, OptionalTensor down_bias, const std::string& how) {
  Call call(GATEFOLD_OP_MLP, "x", x, how);
  const Tensor shape = x;
  const int64_t intermediate_size = set_weights(call, x, gate, up, gate_bias, up_bias);
  const int64_t hidden_size = sizes_of(shape).back();
  require_sizes("down", down, {hidden_size, intermediate_size}, "the width of x and of gate");
  call.set_down("down", down);
  call.set_down_bias("down_bias", down_bias, hidden_size);
  return call.run(tokens_of("x", shape), hidden_size, out);
}

// An operation's two forms: one with a new output, and one that writes its last argument.
template <auto Run>
struct Forms;

template <class... Arguments, Tensor (*Run)(const Tensor*, Arguments...)>
struct Forms<Run> {
  static Tensor with_new_output(Arguments... arguments) { return Run(nullptr, std::move(arguments)...); }
  static void with_output(Arguments... arguments, Tensor out) { Run(&out, std::move(arguments)...); }
};

template <auto Run>
void implement(torch::stable::detail::StableLibrary& library, const char* name) {
  library.impl(name, TORCH_BOX(&Forms<Run>::with_new_output));
  library.impl((std::string(name) + "_out").c_str(), TORCH_BOX(&Forms<Run>::with_output));
}

void implement_all(torch::stable::detail::StableLibrary& library) {
  implement<act_and_mul>(library, "_act_and_mul");
  implement<gemm>(library, "_gemm");
  implement<gemm_gated>(library, "_gemm_gated");
  implement<gate_up>(library, "_gate_up");
  implement<mlp>(library, "_mlp");
}

}  // namespace
}  // namespace gatefold_torch

STABLE_TORCH_LIBRARY_IMPL(gatefold, CPU, library) { gatefold_torch::implement_all(library); }

// A library without CUDA says so, by name, when a plan is made.
STABLE_TORCH_LIBRARY_IMPL(gatefold, CUDA, library) { gatefold_torch::implement_all(library); }
