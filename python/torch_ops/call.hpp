// One run of an operation: its description and its arguments, filled in from tensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plans.hpp"
#include "tensors.hpp"

namespace gatefold_torch {

class Call {
 public:
  // `first` is the argument that the others have to match in element type and device; `how` as in how.hpp.
  Call(gatefold_op op, const Argument& first, const std::string& how);

  gatefold_layout layout() const { return desc_.layout; }
  void set_sizes(int64_t hidden_size, int64_t intermediate_size);

  // A matrix argument, or one whose leading dimensions count tokens. They fill in the library's x, gate, up and down.
  void set_x(const Argument& argument) { input(argument, args_.x, desc_.ld_x); }
  void set_gate(const Argument& argument) { input(argument, args_.gate, desc_.ld_gate); }
  void set_up(const Argument& argument) { input(argument, args_.up, desc_.ld_up); }
  void set_down(const Argument& argument) { input(argument, args_.down, desc_.ld_down); }

  // Bias vectors of `length` elements; none is none.
  void set_gate_bias(const char* name, const OptionalTensor& bias, int64_t length) {
    input_bias(name, bias, length, GATEFOLD_BIAS_GATE, args_.gate_bias);
  }
  void set_up_bias(const char* name, const OptionalTensor& bias, int64_t length) {
    input_bias(name, bias, length, GATEFOLD_BIAS_UP, args_.up_bias);
  }
  void set_down_bias(const char* name, const OptionalTensor& bias, int64_t length) {
    input_bias(name, bias, length, GATEFOLD_BIAS_DOWN, args_.down_bias);
  }

  // Computes into `out`, or where that is null into a new tensor, which is returned; its sizes are `tokens` and then
  // `columns`.
  Tensor run(std::span<const int64_t> tokens, int64_t columns, const Tensor* out);

 private:
  void input(const Argument& argument, const void*& data, int64_t& ld);
  void input_bias(const char* name, const OptionalTensor& bias, int64_t length, gatefold_bias which, const void*& data);

  const Argument& first_;
  gatefold_desc desc_{};
  gatefold_args args_{};
  std::string implementation_;
  std::vector<Tensor> copies_;  // of arguments without a leading dimension
};

}  // namespace gatefold_torch
