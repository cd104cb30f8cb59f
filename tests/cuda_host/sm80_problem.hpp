#pragma once

#include "core/problem.hpp"

namespace gatefold::cuda::sm80 {

inline constexpr Layout packed{LayoutKind::gate_up, 0};

inline Problem problem(Op op, std::int64_t D, std::int64_t F, const Layout& layout = packed) {
  Problem p;
  p.op = op;
  p.types = ElementTypes::all(DType::bf16);
  if (op == Op::gate_up) p.layout = layout;
  p.hidden_size = D;
  p.intermediate_size = F;
  p.ld_x = p.ld_gate = p.ld_up = (D + 7) / 8 * 8;
  return p;
}

}  // namespace gatefold::cuda::sm80
