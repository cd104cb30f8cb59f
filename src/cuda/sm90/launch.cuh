#pragma once

#include <algorithm>

#include "cuda/common/error.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/kernel.cuh"
#include "cuda/sm90/kernels.hpp"

namespace gatefold::cuda::sm90 {

// Weights that one row of lower tiles reads pass through L2 once, as fast as memory sends them: 128 bytes at a time
// they come 1 to 4 % faster (docs/kernels/sm90_log.md). Everything else is brought 256 at a time.
constexpr Promotion weight_promotion(const Config& config, const Geometry& geometry) {
  return geometry.m_tiles == 1 && config.tile_m < 256 ? Promotion::bytes_128 : Promotion::bytes_256;
}

inline Status encode_strip(StripMaps& maps, const MatrixView& rows, const LineMap& lines, const Geometry& geometry,
                           Promotion promotion) {
  const StripBoxes& boxes = geometry.strip_boxes;
  if (boxes.body_rows > 0) {
    Status status = encode_lines(maps.body, rows, lines, boxes.body_rows, promotion);
    if (!status.ok()) return status;
  }
  const std::int32_t box_rows = boxes.edge_rows > 0 ? boxes.edge_rows : geometry.strip_tail_rows;
  return box_rows > 0 ? encode_lines(maps.edge, rows, lines, box_rows, promotion) : Status{};
}

inline Status encode_tokens(TokenMaps& maps, const Problem& problem, const Operands& operands, const Config& config,
                            const Geometry& geometry) {
  const MatrixView x{problem.types.x, operands.x, operands.tokens, problem.hidden_size, problem.ld_x};
  Status status = encode_matrix(maps.body, x, geometry.x_box_rows, config.tile_k(), Swizzle::bytes_128);
  if (!status.ok() || geometry.x_tail_rows == 0) return status;
  return encode_matrix(maps.tail, x, geometry.x_tail_rows, config.tile_k(), Swizzle::bytes_128);
}

// gate and up where eight rows of either come by turns: the one that lies first in memory first.
inline Status encode_alternating(StripMaps& maps, const Problem& problem, const Operands& operands,
                                 const Config& config, const Geometry& geometry, Promotion promotion) {
  const DType type = problem.types.weights;
  const HalfView gate = half_view(problem, operands, Half::gate);
  const HalfView up = half_view(problem, operands, Half::up);
  const auto begin = [&](const HalfView& half) { return half.base + half.map.first * half.ld * size_of(type); };
  const auto [first, second] = std::minmax({begin(gate), begin(up)});  // values, of a list
  const PairOfMatrices pair{{type, first, problem.intermediate_size, problem.hidden_size, gate.ld},
                            second - first,
                            problem.layout.interleaved() ? gate.map.period : 8};
  Status status = encode_pair(maps.body, pair, config.strip_columns() / 8, promotion);
  if (!status.ok() || geometry.strip_tail_rows == 0) return status;
  return encode_pair(maps.edge, pair, geometry.strip_tail_rows / 8, promotion);
}

// The weight tile's two strips as descriptors: gate and up, or of a single weight and of alternating rows the same
// twice.
inline Status encode_weights(StripMaps (&strips)[2], const Problem& problem, const Operands& operands,
                             const Config& config, const Geometry& geometry) {
  const Promotion promotion = weight_promotion(config, geometry);
  const DType type = problem.types.weights;
  const std::int64_t F = problem.intermediate_size;
  const std::int64_t D = problem.hidden_size;
  if (config.alternating) {
    Status status = encode_alternating(strips[0], problem, operands, config, geometry, promotion);
    strips[1] = strips[0];
    return status;
  }
  if (of_two_weights(config.product)) {
    const HalfView gate = half_view(problem, operands, Half::gate);
    const HalfView up = half_view(problem, operands, Half::up);
    Status status = encode_strip(strips[0], {type, gate.base, F, D, gate.ld}, gate.map, geometry, promotion);
    if (!status.ok()) return status;
    return encode_strip(strips[1], {type, up.base, F, D, up.ld}, up.map, geometry, promotion);
  }
  Status status = encode_strip(strips[0], {type, operands.up, F, D, problem.ld_up}, {0, F, F}, geometry, promotion);
  strips[1] = strips[0];
  return status;
}

// What the epilogue stores, reads and applies.
template <class Shape>
Status encode_epilogue(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  using Epilogue = typename Shape::Epilogue;
  if constexpr (Epilogue::store_rows == 0) {
    return Epilogue::fill(arguments.epilogue, problem, operands);
  } else {
    const auto encode = [&](CUtensorMap& map, const void* base, std::int64_t ld) {
      return encode_matrix(map, {problem.types.out, base, operands.tokens, problem.intermediate_size, ld},
                           Epilogue::store_rows, Epilogue::chunk, Epilogue::swizzle);
    };
    Status out = encode(arguments.out, operands.out, problem.ld_out);
    return out.ok() ? Epilogue::fill(arguments.epilogue, problem, operands, encode) : out;
  }
}

template <class Shape>
Status encode(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  constexpr Config config = Shape::config;
  const Geometry& geometry = arguments.geometry;
  arguments.loads.weights_settled = operands.weights_settled;
  Status x = encode_tokens(arguments.loads.x, problem, operands, config, geometry);
  if (!x.ok()) return x;
  if (Status epilogue = encode_epilogue<Shape>(problem, operands, arguments); !epilogue.ok()) return epilogue;
  return encode_weights(arguments.loads.strips, problem, operands, config, geometry);
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
  const std::int32_t work_tiles = g.work_tiles(config);
  const std::int32_t per_leg = work_tiles_per_leg(config, g, resident);
  for (g.leg_begin = 0; g.leg_begin < work_tiles; g.leg_begin = g.leg_end) {
    g.leg_end = g.leg_begin + std::min(per_leg, work_tiles - g.leg_begin);
    Status status = launch_kernel(kernel<Shape>, launch_shape<Shape>(std::min(g.leg_end - g.leg_begin, resident)),
                                  device.index, stream, arguments);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace gatefold::cuda::sm90
