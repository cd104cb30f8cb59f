#pragma once

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/copy_engine/tensor_map.hpp"
#include "cuda/sm90_decode/kernel.cuh"
#include "cuda/sm90_decode/kernels.hpp"

namespace gatefold::cuda::sm90_decode {

// Weights pass through L2 once: 128 bytes at a time they come a little faster (docs/kernels/sm90_log.md).
template <class Shape>
Status encode_weights(const Problem& problem, const Operands& operands, Arguments<Shape>& arguments) {
  const std::int64_t F = problem.intermediate_size;
  const std::int64_t D = problem.hidden_size;
  const auto encode = [&](CUtensorMap& map, const HalfView& half) {
    return encode_lines(map, {problem.types.weights, half.base, F, D, half.ld}, half.map, arguments.slab_rows,
                        Promotion::bytes_128);
  };
  if constexpr (Shape::product == Product::gate_up) {
    const HalfView gate = half_view(problem, operands, Half::gate);
    arguments.block = static_cast<std::int32_t>(gate.map.block);
    if (Status status = encode(arguments.slabs[0], gate); !status.ok()) return status;
    return encode(arguments.slabs[1], half_view(problem, operands, Half::up));
  } else {
    arguments.block = static_cast<std::int32_t>(F);
    Status status = encode(arguments.slabs[0], {operands.up, {0, F, F}, problem.ld_up});
    arguments.slabs[1] = arguments.slabs[0];
    return status;
  }
}

inline Bias bias_of(const Problem& problem, const Operands& operands, Half half) {
  const BiasView view = bias_view(problem, operands, half);
  return {view.base, view.map};
}

template <class Shape>
Status encode(const Problem& problem, const Operands& operands, const Cut& cut, Arguments<Shape>& a) {
  constexpr Config config = Shape::config;
  using Element = typename Shape::Element;
  a.out = reinterpret_cast<Element*>(operands.out);
  a.ld_out = problem.ld_out;
  a.gate_bias = bias_of(problem, operands, Half::gate);
  a.up_bias = bias_of(problem, operands, Half::up);
  a.tokens = static_cast<std::int32_t>(operands.tokens);
  a.columns = static_cast<std::int32_t>(problem.intermediate_size);
  a.k_steps = static_cast<std::int32_t>(k_steps(problem));
  a.slab_rows = cut.slab_rows;
  a.token_tiles = ceil_div(a.tokens, config.tokens);
  a.tiles = static_cast<std::int32_t>(row_tiles(Shape::product, problem, cut.slab_rows)) * a.token_tiles;
  a.split = cut.split;
  a.weights_settled = operands.weights_settled;
  a.combine = ExactCombine(problem.activation);
  a.take_from_environment();
  const MatrixView x{problem.types.x, operands.x, operands.tokens, problem.hidden_size, problem.ld_x};
  Status status = encode_matrix(a.x, x, config.tokens, Config::box_k, Swizzle::bytes_128);
  return status.ok() ? encode_weights(problem, operands, a) : status;
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
  const Cut cut = cut_of(Shape::product, problem, resident);
  if (cut.split == 0)
    return unsupported("device: ", device.index, " (", device.name, ") holds no block of this kernel");
  Arguments<Shape> arguments;
  if (Status status = encode<Shape>(problem, operands, cut, arguments); !status.ok()) return status;
  const auto place = static_cast<std::size_t>(std::ranges::find(splits, cut.split) - splits.begin());
  const int clusters = std::min(arguments.tiles, resident[place]);
  return launch_kernel(kernel<Shape>, launch_shape<Shape>(clusters, cut.split), device.index, stream, arguments);
}

template <class E, Product of, int tokens>
struct Shape {
  using Element = E;
  static constexpr Product product = of;
  static constexpr Config config{.tokens = tokens};
};

template <class Element, Product product, int... tokens>
constexpr std::array<Kernel, sizeof...(tokens)> kernels_with() {
  return {{{product, Shape<Element, product, tokens>::config, launch<Shape<Element, product, tokens>>,
            resident_clusters<Shape<Element, product, tokens>>}...}};
}

template <class Element, Product product>
constexpr auto kernels_of() {
  return kernels_with<Element, product, 8, 16, 24, 32, 48, 64>();
}

}  // namespace gatefold::cuda::sm90_decode
