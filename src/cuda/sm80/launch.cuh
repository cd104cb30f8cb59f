#pragma once

#include <algorithm>
#include <cstdint>

#include "core/arithmetic.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/common/legs.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm80/division.hpp"
#include "cuda/sm80/gemm_kernel.cuh"
#include "cuda/sm80/kernels.hpp"

namespace gatefold::cuda::sm80 {

inline bool has_vectors(const std::byte* base, std::int64_t ld, std::int64_t size) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && ld * size % 16 == 0;
}

// The output has fewer than 2^31 tiles (most_tokens of products.cpp). resident: the clusters that the device holds at a
// time.
inline Params make_params(const Config& config, const Problem& problem, const Operands& operands,
                          std::int64_t resident) {
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
  params.division = divide(config, problem, operands.tokens, resident);
  params.end_share = params.division.shares();
  params.gate_vectors = has_vectors(operands.gate, problem.ld_gate, size);
  params.out_vectors = has_vectors(operands.out, problem.ld_out, size);
  params.combine = Combine(problem.activation);
  params.exact = ExactCombine(problem.activation);
  return params;
}

constexpr CUtensorMapDataType tensor_type(DType dtype) {
  return dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

// Gate's weights and up's, or twice the one weight, in boxes of so many rows.
template <Config C>
Status encode_weights(CUtensorMap* tensors, const Problem& problem, const Operands& operands, int box_rows) {
  const std::int64_t F = problem.intermediate_size;
  for (const Half half : {Half::gate, Half::up}) {
    HalfView rows{operands.up, {0, F, F}, problem.ld_up};
    if constexpr (C.gated_pair()) rows = half_view(problem, operands, half);
    Status status = encode_half(*tensors++, tensor_type(C.dtype), {rows.base, F, problem.hidden_size, rows.ld},
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
  Status of_x = encode_half(params.tensors[BoxParams::of_x], tensor_type(C.dtype),
                            {operands.x, T, problem.hidden_size, problem.ld_x}, {0, T, T}, BoxLoader<C>::token_rows,
                            Promotion::bytes_256);
  if (!of_x.ok()) return of_x;
  Status of_weights = encode_weights<C>(params.tensors + BoxParams::of_weights, problem, operands, C.tile_n / 2);
  if (!of_weights.ok() || params.division.narrow_n == 0) return of_weights;
  return encode_weights<C>(params.tensors + BoxParams::of_narrow_weights, problem, operands,
                           C.tile_n / 6 * params.division.thirds);
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
template <class Build>
Status resident(const DeviceProperties& device, int& clusters) {
  constexpr Config C = Build::config;
  if constexpr (C.cluster > 1) {
    static ResidentClusters known;
    return known(gemm_kernel<Build>, launch_shape<C>(device.multiprocessors / C.cluster), device.index, clusters);
  } else {
    static OncePerDevice once;
    clusters = device.multiprocessors * C.blocks_per_sm;
    return allow_shared_memory(once, reinterpret_cast<const void*>(gemm_kernel<Build>), C.shared_bytes(), device.index);
  }
}

template <class Build>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config C = Build::config;
  int clusters = 0;
  if (Status status = resident<Build>(device, clusters); !status.ok()) return status;

  typename ParamsOf<Build>::Type params;
  static_cast<Params&>(params) = make_params(C, problem, operands, clusters);
  const std::int32_t shares = params.end_share;
  std::int32_t per_leg = shares;
  if constexpr (C.copies == Copies::boxes) {
    if (Status status = encode<C>(problem, operands, params); !status.ok()) return status;
    params.take_from_environment();
    per_leg = shares_per_leg(shares, params.k_tiles, clusters);
  }
  for (; params.first_share < shares; params.first_share = params.end_share) {
    params.end_share = params.first_share + std::min(per_leg, shares - params.first_share);
    const int at_once = std::min(params.end_share - params.first_share, clusters);
    Status status = launch_kernel(gemm_kernel<Build>, launch_shape<C>(at_once), device.index, stream, params);
    if (!status.ok()) return status;
  }
  return {};
}

template <class Build>
constexpr Kernel kernel_of(double teraflops) {
  return {Build::config, teraflops, launch<Build>};
}

}  // namespace gatefold::cuda::sm80
