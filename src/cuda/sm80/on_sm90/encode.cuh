#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm80/on_sm90/box_params.cuh"

namespace gatefold::cuda::sm80 {

// Gate's weights and up's, or twice the one weight, in boxes of so many rows.
template <Config C>
Status encode_weights(CUtensorMap* tensors, const Problem& problem, const Operands& operands, int box_rows) {
  const std::int64_t F = problem.intermediate_size;
  for (const Half half : {Half::gate, Half::up}) {
    HalfView rows{operands.up, {0, F, F}, problem.ld_up};
    if constexpr (C.gated_pair()) rows = half_view(problem, operands, half);
    Status status = encode_lines(*tensors++, {problem.types.weights, rows.base, F, problem.hidden_size, rows.ld},
                                 rows.map, box_rows, Promotion::bytes_256);
    if (!status.ok()) return status;
  }
  return {};
}

// The tensors as the copy engine sees them, each in boxes of what one warp of BoxLoader brings.
template <Config C>
Status encode(const Problem& problem, const Operands& operands, BoxParams& params) {
  const std::int64_t T = operands.tokens;
  const std::int64_t F = problem.intermediate_size;
  params.block = static_cast<std::int32_t>(C.gated_pair() ? problem.layout.map(Half::gate, F).block : F);
  Status of_x =
      encode_lines(params.tensors[BoxParams::of_x], {problem.types.x, operands.x, T, problem.hidden_size, problem.ld_x},
                   {0, T, T}, C.token_box_rows(), Promotion::bytes_256);
  if (!of_x.ok()) return of_x;
  Status of_weights = encode_weights<C>(params.tensors + BoxParams::of_weights, problem, operands, C.tile_n / 2);
  if (!of_weights.ok() || params.division.narrow_n == 0) return of_weights;
  return encode_weights<C>(params.tensors + BoxParams::of_narrow_weights, problem, operands,
                           C.tile_n / 6 * params.division.thirds);
}

}  // namespace gatefold::cuda::sm80
