// The operations on tensors, as implementations of the schemas in gatefold/torch/_library.py. Through torch's stable
// ABI alone: nothing here knows a version of torch or of Python. Differentiation, autocast and shapes of tensors
// without data are Python's.
#include <torch/csrc/stable/library.h>

#include <stdexcept>
#include <tuple>
#include <utility>

#include "call.hpp"

namespace gatefold_torch {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::runtime_error(message); }

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

// x, and the weights of gate and up, which gate_up and mlp have alike. Returns F.
int64_t set_weights(Call& call, const Argument& x, const Argument& gate, const OptionalTensor& up,
                    const OptionalTensor& gate_bias, const OptionalTensor& up_bias) {
  x.tokens();
  require_matrix(gate);
  require_halves(up, call.layout());
  const int64_t rows = gate.sizes[0];
  require_sizes(gate, {}, {rows, x.columns()}, [&] { return shaped(x); });
  const int64_t intermediate_size = half(rows, call.layout());
  call.set_sizes(x.columns(), intermediate_size);
  call.set_x(x);
  call.set_gate(gate);
  if (up) {
    const Argument second("up", *up);
    require_sizes(second, {}, {rows, x.columns()}, [] { return "gate"; });
    call.set_up(second);
  } else if (up_bias) {
    refuse("up_bias: a tensor, but a packed layout has both halves' biases in gate_bias");
  }
  call.set_gate_bias("gate_bias", gate_bias, rows);
  call.set_up_bias("up_bias", up_bias, rows);
  return intermediate_size;
}

// x and the weight that gemm and gemm_gated have alike. Returns its rows.
int64_t set_weight(Call& call, const Argument& x, const Argument& weight, const OptionalTensor& bias) {
  x.tokens();
  require_matrix(weight);
  const int64_t rows = weight.sizes[0];
  require_sizes(weight, {}, {rows, x.columns()}, [&] { return shaped(x); });
  call.set_sizes(x.columns(), rows);
  call.set_x(x);
  call.set_up(weight);
  call.set_up_bias("bias", bias, rows);
  return rows;
}

Tensor act_and_mul(const Tensor* out, const Tensor& gate_tensor, const OptionalTensor& up, const std::string& how) {
  const Argument gate("gate", gate_tensor);
  Call call(GATEFOLD_OP_ACT_AND_MUL, gate, how);
  const auto tokens = gate.tokens();
  require_halves(up, call.layout());
  const int64_t columns = half(gate.columns(), call.layout());
  call.set_sizes(0, columns);
  call.set_gate(gate);
  if (up) {
    const Argument second("up", *up);
    require_sizes(second, tokens, {columns}, [] { return "gate"; });
    call.set_up(second);
  }
  return call.run(tokens, columns, out);
}

Tensor gemm(const Tensor* out, const Tensor& x_tensor, const Tensor& weight, const OptionalTensor& bias,
            const std::string& how) {
  const Argument x("x", x_tensor);
  Call call(GATEFOLD_OP_GEMM, x, how);
  const int64_t rows = set_weight(call, x, Argument("weight", weight), bias);
  return call.run(x.tokens(), rows, out);
}

Tensor gemm_gated(const Tensor* out, const Tensor& x_tensor, const Tensor& gate_tensor, const Tensor& weight_tensor,
                  const OptionalTensor& bias, const std::string& how) {
  const Argument x("x", x_tensor);
  const Argument gate("gate", gate_tensor);
  const Argument weight("weight", weight_tensor);
  Call call(GATEFOLD_OP_GEMM_GATED, x, how);
  const int64_t rows = set_weight(call, x, weight, bias);
  require_sizes(gate, x.tokens(), {rows}, [&] { return shaped(x) + " with " + shaped(weight); });
  call.set_gate(gate);
  return call.run(x.tokens(), rows, out);
}

Tensor gate_up(const Tensor* out, const Tensor& x_tensor, const Tensor& gate, const OptionalTensor& up,
               const OptionalTensor& gate_bias, const OptionalTensor& up_bias, const std::string& how) {
  const Argument x("x", x_tensor);
  Call call(GATEFOLD_OP_GATE_UP, x, how);
  const int64_t columns = set_weights(call, x, Argument("gate", gate), up, gate_bias, up_bias);
  return call.run(x.tokens(), columns, out);
}

Tensor mlp(const Tensor* out, const Tensor& x_tensor, const Tensor& gate, const OptionalTensor& up,
           const Tensor& down_tensor, const OptionalTensor& gate_bias, const OptionalTensor& up_bias,
           const OptionalTensor& down_bias, const std::string& how) {
  const Argument x("x", x_tensor);
  const Argument down("down", down_tensor);
  Call call(GATEFOLD_OP_MLP, x, how);
  const int64_t intermediate_size = set_weights(call, x, Argument("gate", gate), up, gate_bias, up_bias);
  require_sizes(down, {}, {x.columns(), intermediate_size}, [] { return "the width of x and of gate"; });
  call.set_down(down);
  call.set_down_bias("down_bias", down_bias, x.columns());
  return call.run(x.tokens(), x.columns(), out);
}

// An operation's two forms as torch calls them, with the arguments on a stack, where the result goes too: one with a
// new output, and one that writes its last argument.
template <auto Run>
struct Forms;

template <class... Arguments, Tensor (*Run)(const Tensor*, const Arguments&...)>
struct Forms<Run> {
  template <size_t... I>
  static std::tuple<Arguments...> take_all(StableIValue* stack, std::index_sequence<I...>) {
    return {take<Arguments>(stack[I])...};
  }

  static Tensor call(const Tensor* out, StableIValue* stack) {
    const auto arguments = take_all(stack, std::index_sequence_for<Arguments...>{});
    return std::apply([out](const auto&... argument) { return Run(out, argument...); }, arguments);
  }

  static void with_new_output(StableIValue* stack, uint64_t /*inputs*/, uint64_t /*outputs*/) {
    stack[0] = torch::stable::detail::from(call(nullptr, stack).release());
  }

  static void with_output(StableIValue* stack, uint64_t /*inputs*/, uint64_t /*outputs*/) {
    const auto out = take<Tensor>(stack[sizeof...(Arguments)]);
    call(&out, stack);
  }
};

template <auto Run>
void implement(torch::stable::detail::StableLibrary& library, const char* name) {
  library.impl(name, &Forms<Run>::with_new_output);
  library.impl((std::string(name) + "_out").c_str(), &Forms<Run>::with_output);
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
