#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/arithmetic.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/common/legs.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm80/gemm_kernel.cuh"
#include "cuda/sm80/kernels.hpp"
#include "cuda/sm80/raster.hpp"

namespace gatefold::cuda::sm80 {

inline bool has_vectors(const std::byte* base, std::int64_t ld, std::int64_t size) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && ld * size % 16 == 0;
}

// The output must have fewer than 2^31 tiles. resident: the clusters that the device holds at a time.
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
  params.tiles_m = static_cast<std::int32_t>(ceil_div(operands.tokens, config.tile_m));
  params.tiles_n = static_cast<std::int32_t>(ceil_div(F, config.out_columns() * config.cluster));
  params.tiles = params.tiles_m * params.tiles_n;
  params.whole_tiles = config.splits() ? whole_tiles(params.tiles, resident) : params.tiles;
  params.end_share = params.tiles + (params.tiles - params.whole_tiles);
  params.group_m = raster_group(params.tiles_m, config.tile_m);
  params.gate_vectors = has_vectors(operands.gate, problem.ld_gate, size);
  params.out_vectors = has_vectors(operands.out, problem.ld_out, size);
  params.combine = Combine(problem.activation);
  params.exact = ExactCombine(problem.activation);
  return params;
}

// The tensors as the copy engine sees them, each in boxes of what one warp of BoxLoader brings.
template <Config C>
Status encode(const Problem& problem, const Operands& operands, BoxParams& params) {
  constexpr CUtensorMapDataType type =
      C.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const std::int64_t T = operands.tokens;
  const std::int64_t D = problem.hidden_size;
  const std::int64_t F = problem.intermediate_size;
  const auto half_of_weights = [&](const HalfView& half, CUtensorMap& tensor) {
    params.block = static_cast<std::int32_t>(half.map.block);
    return encode_half(tensor, type, {half.base, F, D, half.ld}, half.map, C.tile_n / 2, Promotion::bytes_256);
  };
  Status of_x = encode_half(params.tensors[0], type, {operands.x, T, D, problem.ld_x}, {0, T, T},
                            BoxLoader<C>::token_rows, Promotion::bytes_256);
  if (!of_x.ok()) return of_x;
  params.tensors[1] = params.tensors[0];
  if constexpr (C.gated_pair()) {
    Status of_gate = half_of_weights(half_view(problem, operands, Half::gate), params.tensors[2]);
    if (!of_gate.ok()) return of_gate;
    return half_of_weights(half_view(problem, operands, Half::up), params.tensors[3]);
  } else {
    Status of_weight = half_of_weights({operands.up, {0, F, F}, problem.ld_up}, params.tensors[2]);
    params.tensors[3] = params.tensors[2];
    return of_weight;
  }
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

  const std::int64_t tiles = ceil_div(operands.tokens, C.tile_m) * ceil_div(problem.intermediate_size, C.out_columns());
  if (tiles > std::numeric_limits<std::int32_t>::max()) {
    return unsupported("tokens: ", operands.tokens, " x ", problem.intermediate_size, " takes ", tiles, " tiles, ",
                       to_string(C), " has at most ", std::numeric_limits<std::int32_t>::max());
  }
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
