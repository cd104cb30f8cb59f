#pragma once

#include <algorithm>
#include <array>

#include "cuda/common/launch.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm90_decode/kernel.cuh"
#include "cuda/sm90_decode/kernels.hpp"
#include "cuda/sm90_decode/shape.cuh"

namespace gatefold::cuda::sm90_decode {

// Runs where there are whole lines, and lines for a last step that ends within one.
inline Status encode_rows(RowMaps& maps, const MatrixView& view, const LineMap& lines, int box_rows,
                          const Config& config, const Geometry& geometry, Promotion promotion) {
  if (geometry.run_steps > 0) {
    Status status = encode_runs(maps.runs, view, lines, box_rows, config.boxes(), promotion);
    if (!status.ok()) return status;
  }
  return geometry.run_steps == geometry.k_steps ? Status{} : encode_lines(maps.lines, view, lines, box_rows, promotion);
}

// Weights pass through L2 once: 128 bytes at a time they come a little faster (docs/kernels/sm90_log.md).
inline Status encode_half(RowMaps& maps, const Problem& problem, const HalfView& half, const Config& config,
                          const Geometry& geometry) {
  return encode_rows(maps, {problem.types.weights, half.base, problem.intermediate_size, problem.hidden_size, half.ld},
                     half.map, config.request_rows(geometry.slab_rows), config, geometry, Promotion::bytes_128);
}

// By request: gate and up, or a single weight.
inline Status encode_weights(RowMaps* maps, const Problem& problem, const Operands& operands, const Config& config,
                             const Geometry& geometry) {
  if (config.product == Product::gemm) {
    const std::int64_t F = problem.intermediate_size;
    return encode_half(maps[0], problem, {operands.up, {0, F, F}, problem.ld_up}, config, geometry);
  }
  Status status = encode_half(maps[0], problem, half_view(problem, operands, Half::gate), config, geometry);
  if (!status.ok()) return status;
  return encode_half(maps[1], problem, half_view(problem, operands, Half::up), config, geometry);
}

template <class Shape>
Status encode(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  constexpr Config config = Shape::config;
  Shape::Epilogue::fill(arguments.epilogue, problem, operands);
  const MatrixView x{problem.types.x, operands.x, operands.tokens, problem.hidden_size, problem.ld_x};
  Status status = encode_rows(arguments.loads.x, x, {0, x.rows, x.rows}, config.tokens, config, arguments.geometry,
                              Promotion::bytes_256);
  if (!status.ok()) return status;
  return encode_weights(arguments.loads.weights, problem, operands, config, arguments.geometry);
}

// The blocks may begin while the kernel before is ending; they wait for it before they read x.
template <class Shape>
LaunchShape launch_shape(int clusters, int split) {
  return {.grid = dim3(static_cast<unsigned>(clusters * split)),
          .block = dim3(Config::threads),
          .shared_bytes = Shape::config.shared_bytes(),
          .cluster = split,
          .early = true};
}

// Asked once per device and split. A split that the device cannot hold counts no clusters.
template <class Shape>
ResidentClusters resident_clusters(const DeviceProperties& device) {
  static std::array<cuda::ResidentClusters, splits.size()> known;
  ResidentClusters clusters{};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const LaunchShape shape = launch_shape<Shape>(device.multiprocessors / splits[i], splits[i]);
    if (!known[i](kernel<Shape>, shape, device.index, clusters[i]).ok()) clusters[i] = 0;
  }
  return clusters;
}

template <class Shape>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  const ResidentClusters resident = resident_clusters<Shape>(device);
  const Cut cut = cut_of(Shape::config, problem, resident);
  if (cut.split == 0)
    return unsupported("device: ", device.index, " (", device.name, ") holds no block of this kernel");
  Arguments<Shape> arguments;
  arguments.geometry = geometry_of(Shape::config, problem, operands, cut);
  arguments.take_from_environment();
  if (Status status = encode<Shape>(problem, operands, arguments); !status.ok()) return status;
  const auto place = static_cast<std::size_t>(std::ranges::find(splits, cut.split) - splits.begin());
  const int clusters = std::min(arguments.geometry.tiles, resident[place]);
  return launch_kernel(kernel<Shape>, launch_shape<Shape>(clusters, cut.split), device.index, stream, arguments);
}

template <class Element, Config... configs>
constexpr std::array<Kernel, sizeof...(configs)> kernels_with() {
  return {{{configs, launch<Shape<Element, configs>>, resident_clusters<Shape<Element, configs>>}...}};
}

template <class Element, Product p>
constexpr auto kernels_of() {
  if constexpr (p == Product::gate_up) {
    return kernels_with<Element, Config{8, p}, Config{16, p}, Config{24, p}, Config{32, p}, Config{48, p},
                        Config{64, p}>();
  } else {
    return kernels_with<Element, Config{8, p}, Config{16, p}, Config{16, p, 32}, Config{24, p}, Config{24, p, 32},
                        Config{32, p}, Config{32, p, 32}, Config{48, p}, Config{64, p}>();
  }
}

}  // namespace gatefold::cuda::sm90_decode
