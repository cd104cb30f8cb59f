#pragma once

#include <atomic>

#include "cuda/common/error.hpp"
#include "cuda/sm90/kernel.cuh"
#include "cuda/sm90/kernels.hpp"
#include "cuda/sm90/tensor_map.hpp"

namespace gatefold::cuda::sm90 {

template <class Element>
constexpr CUtensorMapDataType tensor_type =
    std::is_same_v<Element, cute::bfloat16_t> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

// Walking about this many tokens together keeps their rows in L2 while the weights pass by.
constexpr int band_tokens = 2048;

constexpr std::int64_t tiles_of(std::int64_t size, int tile, int cluster) {
  const std::int64_t tiles = (size + tile - 1) / tile;
  return (tiles + cluster - 1) / cluster * cluster;
}

// Where all tokens fit one tile, only they are brought, in whole swizzle atoms of 8 rows: rows that the copy engine has
// to fill with zeros take longer than rows of memory (Llama 70B, 65 tokens: 332 us for what took 254 us with 128).
template <class Shape>
constexpr std::int64_t x_rows_of(std::int64_t tokens) {
  constexpr Config config = Shape::config;
  if (tokens > config.tile_m) return config.tile_m / config.cluster_n;
  const std::int64_t share = (tokens + config.cluster_n - 1) / config.cluster_n;
  return (share + 7) / 8 * 8;
}

template <class Shape>
Geometry geometry_of(const Problem& problem, std::int64_t tokens) {
  constexpr Config config = Shape::config;
  Geometry geometry{};
  geometry.k_steps = static_cast<std::int32_t>((problem.hidden_size + Config::tile_k - 1) / Config::tile_k);
  geometry.m_tiles = static_cast<std::int32_t>(tiles_of(tokens, config.tile_m, config.cluster_m));
  geometry.n_tiles = static_cast<std::int32_t>(tiles_of(problem.intermediate_size, config.columns(), config.cluster_n));
  geometry.x_rows = static_cast<std::int32_t>(x_rows_of<Shape>(tokens));
  geometry.group_m = band_tokens / (config.tile_m * config.cluster_m);
  geometry.block = static_cast<std::int32_t>(problem.layout.map(Half::gate, problem.intermediate_size).block);
  return geometry;
}

// The weight tile's two halves as descriptors: gate and up, or of a plain product the same weight twice.
template <class Shape>
Status encode_weights(const Problem& problem, const Operands& operands, Arguments& arguments) {
  constexpr Config config = Shape::config;
  constexpr CUtensorMapDataType type = tensor_type<typename Shape::Element>;
  const std::int64_t F = problem.intermediate_size;
  const std::int64_t D = problem.hidden_size;
  if constexpr (config.gated) {
    const HalfView gate = half_view(problem, operands, Half::gate);
    const HalfView up = half_view(problem, operands, Half::up);
    Status status = encode_half(arguments.first_half, type, {gate.base, F, D, gate.ld}, gate.map, config.tile_n / 2);
    if (!status.ok()) return status;
    return encode_half(arguments.second_half, type, {up.base, F, D, up.ld}, up.map, config.tile_n / 2);
  } else {
    Status status =
        encode_half(arguments.first_half, type, {operands.up, F, D, problem.ld_up}, {0, F, F}, config.tile_n / 2);
    arguments.second_half = arguments.first_half;
    return status;
  }
}

template <class Shape>
Status encode(const Problem& problem, const Operands& operands, Arguments& arguments) {
  constexpr Config config = Shape::config;
  using Element = typename Shape::Element;
  using Epilogue = sm90::Epilogue<config, Element>;
  constexpr CUtensorMapDataType type = tensor_type<Element>;
  Status x = encode_matrix(arguments.x, type, {operands.x, operands.tokens, problem.hidden_size, problem.ld_x},
                           static_cast<int>(x_rows_of<Shape>(operands.tokens)), Config::tile_k, Swizzle::bytes_128);
  if (!x.ok()) return x;
  Status out =
      encode_matrix(arguments.out, type, {operands.out, operands.tokens, problem.intermediate_size, problem.ld_out}, 64,
                    Epilogue::chunk, Epilogue::swizzle);
  if (!out.ok()) return out;
  return encode_weights<Shape>(problem, operands, arguments);
}

template <class Shape>
cudaLaunchConfig_t launch_config(int clusters, cudaStream_t stream, cudaLaunchAttribute& attribute) {
  constexpr Config config = Shape::config;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(config.cluster()), 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(clusters * config.cluster()));
  launch.blockDim = dim3(config.threads());
  launch.dynamicSmemBytes = config.shared_bytes();
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  return launch;
}

// How many clusters the device holds at a time: not its multiprocessors over the cluster size, since a cluster stays
// within one GPC. Asked once per device, together with the shared memory limit.
template <class Shape>
Status resident_clusters(const DeviceProperties& device, int& clusters) {
  static std::array<std::atomic<int>, 64> known{};
  const bool tracked = device.index < static_cast<int>(known.size());
  clusters = tracked ? known[device.index].load(std::memory_order_relaxed) : 0;
  if (clusters > 0) return {};
  cudaError_t error =
      cudaFuncSetAttribute(kernel<Shape>, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::config.shared_bytes());
  if (error == cudaSuccess) {
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t launch = launch_config<Shape>(device.multiprocessors, nullptr, attribute);
    error = cudaOccupancyMaxActiveClusters(&clusters, kernel<Shape>, &launch);
  }
  if (error == cudaSuccess && tracked) known[device.index].store(clusters, std::memory_order_relaxed);
  return status_of(error, "preparing an sm90 kernel", device.index);
}

template <class Shape>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config config = Shape::config;
  Arguments arguments;
  arguments.geometry = geometry_of<Shape>(problem, operands.tokens);
  arguments.combine = Combine(problem.activation);
  arguments.take_from_environment();
  if (Status status = encode<Shape>(problem, operands, arguments); !status.ok()) return status;

  int resident = 0;
  if (Status status = resident_clusters<Shape>(device, resident); !status.ok()) return status;
  const std::int64_t tiles = std::int64_t{arguments.geometry.m_tiles} * arguments.geometry.n_tiles / config.cluster();
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t launch =
      launch_config<Shape>(static_cast<int>(std::min<std::int64_t>(tiles, resident)), stream, attribute);
  return status_of(cudaLaunchKernelEx(&launch, kernel<Shape>, arguments), "kernel launch", device.index);
}

}  // namespace gatefold::cuda::sm90
