#pragma once

#include <algorithm>
#include <array>

#include "cuda/common/launch.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm90_decode/kernel.cuh"
#include "cuda/sm90_decode/kernels.hpp"
#include "cuda/sm90_decode/shape.cuh"

namespace gatefold::cuda::sm90_decode {

// Weights pass through L2 once: 128 bytes at a time they come a little faster (docs/kernels/sm90_log.md).
inline Status encode_slab(CUtensorMap& map, const Problem& problem, const HalfView& half, const Geometry& geometry) {
  return encode_lines(map, {problem.types.weights, half.base, problem.intermediate_size, problem.hidden_size, half.ld},
                      half.map, geometry.slab_rows, Promotion::bytes_128);
}

// A tile's two slabs as descriptors: gate and up, or of a single weight the same twice.
inline Status encode_weights(CUtensorMap (&slabs)[2], Product product, const Problem& problem, const Operands& operands,
                             const Geometry& geometry) {
  if (product == Product::gate_up) {
    Status status = encode_slab(slabs[0], problem, half_view(problem, operands, Half::gate), geometry);
    if (!status.ok()) return status;
    return encode_slab(slabs[1], problem, half_view(problem, operands, Half::up), geometry);
  }
  const std::int64_t F = problem.intermediate_size;
  Status status = encode_slab(slabs[0], problem, {operands.up, {0, F, F}, problem.ld_up}, geometry);
  slabs[1] = slabs[0];
  return status;
}

template <class Shape>
Status encode(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  constexpr Config config = Shape::config;
  Shape::Epilogue::fill(arguments.epilogue, problem, operands);
  const MatrixView x{problem.types.x, operands.x, operands.tokens, problem.hidden_size, problem.ld_x};
  Status status = encode_matrix(arguments.loads.x, x, config.tokens, Config::box_k, Swizzle::bytes_128);
  if (!status.ok()) return status;
  return encode_weights(arguments.loads.slabs, config.product, problem, operands, arguments.geometry);
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
