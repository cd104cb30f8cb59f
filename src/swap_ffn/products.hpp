#pragma once

#include "core/problem.hpp"
#include "swap_ffn/config.hpp"

// The step's products, as ops.
namespace gatefold::swap_ffn {

inline Problem product(Op op, DType dtype, Device device, std::int64_t depth, std::int64_t columns) {
  Problem problem;
  problem.op = op;
  problem.types = ElementTypes::all(dtype);
  problem.device = device;
  problem.hidden_size = depth;
  problem.intermediate_size = columns;
  problem.ld_x = depth;
  problem.ld_up = depth;
  problem.ld_out = columns;
  return problem;
}

// 1/rms of each row scales its sums.
inline Problem scaled_gate_up(const Config& c) {
  Problem problem = product(Op::gate_up, c.dtype, c.device, c.hidden_size, c.intermediate_size);
  problem.layout.kind = LayoutKind::separate;
  problem.activation.kind = ActivationKind::silu;
  problem.ld_gate = c.hidden_size;
  problem.row_scale = true;
  problem.weights_settled = true;
  return problem;
}

inline Problem down_product(const Config& c) {
  Problem problem = product(Op::gemm, c.dtype, c.device, c.intermediate_size, c.hidden_size);
  problem.weights_settled = true;
  return problem;
}

}  // namespace gatefold::swap_ffn
