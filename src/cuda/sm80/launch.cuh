#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/common/legs.hpp"
#include "cuda/sm80/division.hpp"
#include "cuda/sm80/gemm_kernel.cuh"
#include "cuda/sm80/kernels.hpp"
#include "cuda/sm80/on_sm90/encode.cuh"
#include "cuda/sm80/shape.cuh"

namespace gatefold::cuda::sm80 {

inline bool has_vectors(const std::byte* base, std::int64_t ld, std::int64_t size) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && ld * size % 16 == 0;
}

// The output has fewer than 2^31 tiles (most_tokens of products.cpp). resident: the clusters that the device holds at a
// time.
inline Params make_params(const Config& config, const Problem& problem, const Operands& operands,
                          std::int64_t resident) {
  const std::int64_t size = size_of(problem.types.x);
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
  params.division = divide(config, problem, operands.tokens, resident);
  params.end_work_tile = params.division.work_tiles();
  params.gate_vectors = has_vectors(operands.gate, problem.ld_gate, size);
  params.out_vectors = has_vectors(operands.out, problem.ld_out, size);
  params.combine = Combine(problem.activation);
  params.exact = ExactCombine(problem.activation);
  if (problem.op == Op::gate_up) params.gate_bias = TileBias(problem, operands, Half::gate);
  params.up_bias = TileBias(problem, operands, Half::up);
  return params;
}

template <Config C>
LaunchShape launch_shape(std::int64_t clusters) {
  return {.grid = dim3(static_cast<unsigned>(clusters * C.cluster)),
          .block = dim3(C.threads()),
          .shared_bytes = C.shared_bytes(),
          .cluster = C.cluster > 1 ? C.cluster : 0,
          .early = C.copies == Copies::boxes};
}

// The blocks, or clusters of them, that the device holds at a time.
template <class Shape>
Status resident(const DeviceProperties& device, int& clusters) {
  constexpr Config C = Shape::config;
  if constexpr (C.cluster > 1) {
    static ResidentClusters known;
    return known(gemm_kernel<Shape>, launch_shape<C>(device.multiprocessors / C.cluster), device.index, clusters);
  } else {
    static OncePerDevice once;
    clusters = device.multiprocessors * C.blocks_per_sm;
    return allow_shared_memory(once, reinterpret_cast<const void*>(gemm_kernel<Shape>), C.shared_bytes(), device.index);
  }
}

template <class Shape>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config C = Shape::config;
  int clusters = 0;
  if (Status status = resident<Shape>(device, clusters); !status.ok()) return status;

  typename Shape::Loads::Arguments params;
  static_cast<Params&>(params) = make_params(C, problem, operands, clusters);
  const std::int32_t work_tiles = params.end_work_tile;
  std::int32_t per_leg = work_tiles;
  if constexpr (C.copies == Copies::boxes) {
    if (Status status = encode<C>(problem, operands, params); !status.ok()) return status;
    params.take_from_environment();
    per_leg = work_tiles_per_leg(work_tiles, params.k_tiles, clusters);
  }
  for (; params.first_work_tile < work_tiles; params.first_work_tile = params.end_work_tile) {
    params.end_work_tile = params.first_work_tile + std::min(per_leg, work_tiles - params.first_work_tile);
    const int at_once = std::min(params.end_work_tile - params.first_work_tile, clusters);
    Status status = launch_kernel(gemm_kernel<Shape>, launch_shape<C>(at_once), device.index, stream, params);
    if (!status.ok()) return status;
  }
  return {};
}

template <class Tile>
constexpr Kernel kernel_of(double teraflops) {
  return {Tile::config, teraflops, launch<sm80::Shape<Tile>>};
}

}  // namespace gatefold::cuda::sm80
