#pragma once

#include <algorithm>

#include "cuda/common/error.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/kernel.cuh"
#include "cuda/sm90/kernels.hpp"

namespace gatefold::cuda::sm90 {

template <class Element>
constexpr CUtensorMapDataType tensor_type =
    std::is_same_v<Element, cute::bfloat16_t> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

// Weights that one row of lower tiles reads pass through L2 once, as fast as memory sends them: 128 bytes at a time
// they come 1 to 4 % faster (docs/kernels/sm90_log.md). Everything else is brought 256 at a time.
constexpr Promotion weight_promotion(const Config& config, const Geometry& geometry) {
  return geometry.m_tiles == 1 && config.tile_m < 256 ? Promotion::bytes_128 : Promotion::bytes_256;
}

inline Status encode_half(HalfMaps& maps, CUtensorMapDataType type, const MatrixView& half, const LineMap& lines,
                          const Geometry& geometry, Promotion promotion) {
  const HalfBoxes& boxes = geometry.half_boxes;
  if (boxes.body_rows > 0) {
    Status status = encode_half(maps.body, type, half, lines, boxes.body_rows, promotion);
    if (!status.ok()) return status;
  }
  const std::int32_t rows = boxes.edge_rows > 0 ? boxes.edge_rows : geometry.half_tail_rows;
  return rows > 0 ? encode_half(maps.edge, type, half, lines, rows, promotion) : Status{};
}

inline Status encode_tokens(TokenMaps& maps, CUtensorMapDataType type, const Problem& problem, const Operands& operands,
                            const Geometry& geometry) {
  const MatrixView x{operands.x, operands.tokens, problem.hidden_size, problem.ld_x};
  Status status = encode_matrix(maps.body, type, x, geometry.x_box_rows, Config::tile_k, Swizzle::bytes_128);
  if (!status.ok() || geometry.x_tail_rows == 0) return status;
  return encode_matrix(maps.tail, type, x, geometry.x_tail_rows, Config::tile_k, Swizzle::bytes_128);
}

// The weight tile's two halves as descriptors: gate and up, or of a single weight the same twice.
template <class Shape>
Status encode_weights(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  constexpr Config config = Shape::config;
  const Geometry& geometry = arguments.geometry;
  const Promotion promotion = weight_promotion(config, geometry);
  constexpr CUtensorMapDataType type = tensor_type<typename Shape::Element>;
  const std::int64_t F = problem.intermediate_size;
  const std::int64_t D = problem.hidden_size;
  if constexpr (config.product == Product::gate_up) {
    const HalfView gate = half_view(problem, operands, Half::gate);
    const HalfView up = half_view(problem, operands, Half::up);
    Status status = encode_half(arguments.halves[0], type, {gate.base, F, D, gate.ld}, gate.map, geometry, promotion);
    if (!status.ok()) return status;
    return encode_half(arguments.halves[1], type, {up.base, F, D, up.ld}, up.map, geometry, promotion);
  } else {
    Status status =
        encode_half(arguments.halves[0], type, {operands.up, F, D, problem.ld_up}, {0, F, F}, geometry, promotion);
    arguments.halves[1] = arguments.halves[0];
    return status;
  }
}

// What the epilogue stores, reads and applies.
template <class Shape>
Status encode_epilogue(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  constexpr Config config = Shape::config;
  using Element = typename Shape::Element;
  using Epilogue = EpilogueOf<config, Element>;
  auto& epilogue = arguments.epilogue;
  epilogue.combine = decltype(epilogue.combine)(problem.activation);
  const auto encode = [&](CUtensorMap& map, const void* base, std::int64_t ld) {
    return encode_matrix(map, tensor_type<Element>, {base, operands.tokens, problem.intermediate_size, ld},
                         Epilogue::store_rows, Epilogue::chunk, Epilogue::swizzle);
  };
  Status status = encode(arguments.out, operands.out, problem.ld_out);
  if constexpr (config.product == Product::gated_by_memory) {
    if (status.ok()) return encode(epilogue.gate, operands.gate, problem.ld_gate);
  }
  return status;
}

template <class Shape>
Status encode(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  constexpr CUtensorMapDataType type = tensor_type<typename Shape::Element>;
  if (Status x = encode_tokens(arguments.x, type, problem, operands, arguments.geometry); !x.ok()) return x;
  if (Status epilogue = encode_epilogue<Shape>(problem, operands, arguments); !epilogue.ok()) return epilogue;
  return encode_weights<Shape>(problem, operands, arguments);
}

template <class Shape>
LaunchShape launch_shape(int clusters) {
  constexpr Config config = Shape::config;
  // The blocks may begin while the kernel before is ending; they wait for it before they read x.
  return {.grid = dim3(static_cast<unsigned>(clusters * config.cluster())),
          .block = dim3(config.threads()),
          .shared_bytes = config.shared_bytes(),
          .cluster = config.cluster(),
          .early = true};
}

template <class Shape>
Status resident_clusters(const DeviceProperties& device, int& clusters) {
  static ResidentClusters resident;
  return resident(kernel<Shape>, launch_shape<Shape>(device.multiprocessors), device.index, clusters);
}

template <class Shape>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config config = Shape::config;
  Arguments<Shape> arguments;
  int resident = 0;
  if (Status status = resident_clusters<Shape>(device, resident); !status.ok()) return status;
  arguments.geometry = geometry_of(config, problem, operands.tokens, resident);
  arguments.take_from_environment();
  if (Status status = encode<Shape>(problem, operands, arguments); !status.ok()) return status;

  Geometry& g = arguments.geometry;
  const std::int32_t shares = g.shares(config);
  const std::int32_t per_leg = shares_per_leg(config, g, resident);
  for (g.leg_begin = 0; g.leg_begin < shares; g.leg_begin = g.leg_end) {
    g.leg_end = g.leg_begin + std::min(per_leg, shares - g.leg_begin);
    Status status = launch_kernel(kernel<Shape>, launch_shape<Shape>(std::min(g.leg_end - g.leg_begin, resident)),
                                  device.index, stream, arguments);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace gatefold::cuda::sm90
