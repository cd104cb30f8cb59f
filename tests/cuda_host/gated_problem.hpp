#pragma once

#include "core/problem.hpp"

namespace gatefold::cuda::sm90 {

// A gate_up of bf16, as far as the choice of a kernel asks.
inline Problem gated_problem(std::int64_t hidden_size, std::int64_t intermediate_size,
                             const Layout& layout = {LayoutKind::separate, 0}) {
  Problem problem;
  problem.op = Op::gate_up;
  problem.types = ElementTypes::all(DType::bf16);
  problem.layout = layout;
  problem.hidden_size = hidden_size;
  problem.intermediate_size = intermediate_size;
  return problem;
}

// Of a layout that is interleaved by `block` rows.
inline Problem blocks_of(std::int64_t block) {
  return gated_problem(4096, 12288, {LayoutKind::interleaved_gate_up, block});
}

// A gemm of bf16.
inline Problem plain_problem(std::int64_t hidden_size, std::int64_t intermediate_size) {
  Problem problem = gated_problem(hidden_size, intermediate_size, {});
  problem.op = Op::gemm;
  return problem;
}

// A gemm_gated of bf16.
inline Problem gated_by_memory_problem(std::int64_t hidden_size, std::int64_t intermediate_size) {
  Problem problem = gated_problem(hidden_size, intermediate_size, {});
  problem.op = Op::gemm_gated;
  return problem;
}

}  // namespace gatefold::cuda::sm90
