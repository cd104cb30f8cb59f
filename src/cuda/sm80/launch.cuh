#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/arithmetic.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/sm80/gemm_kernel.cuh"
#include "cuda/sm80/kernels.hpp"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {

inline bool has_vectors(const std::byte* base, std::int64_t ld, std::int64_t size) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && ld * size % 16 == 0;
}

// The output must have fewer than 2^31 tiles. blocks: that the device holds at a time.
inline Params make_params(const Config& config, const Problem& problem, const Operands& operands, std::int64_t blocks) {
  const std::int64_t size = size_of(problem.dtype);
  const std::int64_t F = problem.intermediate_size;
  Params params;
  params.x = operands.x;
  params.x_row_bytes = problem.ld_x * size;
  if (problem.op == Op::gate_up) {
    const HalfView gate = half_view(problem, operands, Half::gate);
    const HalfView up = half_view(problem, operands, Half::up);
    params.gate_rows = WeightRows(gate.base, gate.map, gate.ld * size);
    params.up_rows = WeightRows(up.base, up.map, up.ld * size);
  } else {
    params.up_rows = WeightRows(operands.up, {0, F, F}, problem.ld_up * size);
  }
  params.gate = operands.gate;
  params.ld_gate = problem.ld_gate;
  params.out = operands.out;
  params.ld_out = problem.ld_out;
  params.tokens = operands.tokens;
  params.sum_bytes = static_cast<std::int32_t>(problem.hidden_size * size);
  params.k_tiles = static_cast<std::int32_t>(ceil_div(problem.hidden_size, config.tile_k));
  params.intermediate_size = static_cast<std::int32_t>(F);
  params.tiles_m = static_cast<std::int32_t>(ceil_div(operands.tokens, config.tile_m));
  params.tiles_n = static_cast<std::int32_t>(ceil_div(F, config.out_columns()));
  params.tiles = params.tiles_m * params.tiles_n;
  params.whole_tiles = config.splits() ? whole_tiles(params.tiles, blocks) : params.tiles;
  params.group_m = raster_group(params.tiles_m, config.tile_m);
  params.gate_vectors = has_vectors(operands.gate, problem.ld_gate, size);
  params.out_vectors = has_vectors(operands.out, problem.ld_out, size);
  params.combine = Combine(problem.activation);
  params.exact = ExactCombine(problem.activation);
  return params;
}

template <class Build>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config C = Build::config;
  static OncePerDevice once;
  void (*const kernel)(Params) = gemm_kernel<Build>;
  Status status = allow_shared_memory(once, reinterpret_cast<const void*>(kernel), C.shared_bytes(), device.index);
  if (!status.ok()) return status;

  const std::int64_t tiles = ceil_div(operands.tokens, C.tile_m) * ceil_div(problem.intermediate_size, C.out_columns());
  if (tiles > std::numeric_limits<std::int32_t>::max()) {
    return unsupported("tokens: ", operands.tokens, " x ", problem.intermediate_size, " takes ", tiles, " tiles, ",
                       to_string(C), " has at most ", std::numeric_limits<std::int32_t>::max());
  }
  const std::int64_t resident = std::int64_t{device.multiprocessors} * C.blocks_per_sm;
  const Params params = make_params(C, problem, operands, resident);
  const std::int64_t shares = tiles + (tiles - params.whole_tiles);
  const auto blocks = static_cast<unsigned>(std::min(shares, resident));
  return launch_kernel(kernel, {dim3(blocks), dim3(C.threads()), C.shared_bytes()}, device.index, stream, params);
}

template <class Build>
constexpr Kernel kernel_of(double teraflops) {
  return {Build::config, teraflops, launch<Build>};
}

}  // namespace gatefold::cuda::sm80
