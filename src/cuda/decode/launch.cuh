#pragma once

#include <algorithm>
#include <array>

#include "core/problem.hpp"
#include "cuda/common/device.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/decode/kernel.cuh"
#include "cuda/decode/kernels.hpp"

namespace gatefold::cuda::decode {

constexpr std::int64_t most_blocks_y = 65535;

inline Rows rows_of(const HalfView& view) { return {view.base, view.map, view.ld * Config::element_bytes}; }

template <Product product, Config config>
Arguments arguments_of(const Problem& problem, const Operands& operands) {
  Arguments a;
  a.x = operands.x;
  a.x_stride = problem.ld_x * Config::element_bytes;
  if (product == Product::gate_up) {
    a.gate = rows_of(half_view(problem, operands, Half::gate));
    a.up = rows_of(half_view(problem, operands, Half::up));
  } else {
    a.up = {
        operands.up, {0, problem.intermediate_size, problem.intermediate_size}, problem.ld_up * Config::element_bytes};
  }
  const BiasView gate_bias = bias_view(problem, operands, Half::gate);
  const BiasView up_bias = bias_view(problem, operands, Half::up);
  a.gate_bias = {gate_bias.base, gate_bias.map};
  a.up_bias = {up_bias.base, up_bias.map};
  a.out = operands.out;
  a.out_stride = problem.ld_out * Config::element_bytes;
  a.tokens = operands.tokens;
  a.columns = problem.intermediate_size;
  a.depth = static_cast<int>(problem.hidden_size);
  constexpr int columns = tile_columns(product, config);
  a.tiles = static_cast<int>((a.columns + columns - 1) / columns);
  a.weights_settled = operands.weights_settled;
  a.combine = ExactCombine(problem.activation);
  return a;
}

// Blocks of a launch's first dimension stay on their multiprocessors and take every so many-th tile; the second counts
// the kernel's worth of tokens, each of which reads the weights again.
template <class Shape>
Status launch(const Problem& problem, const Operands& operands, const DeviceProperties& device, cudaStream_t stream) {
  constexpr Config config = Shape::config;
  constexpr auto kernel = decode_kernel<Shape>;
  static OncePerDevice once;
  if (Status status =
          allow_shared_memory(once, reinterpret_cast<const void*>(kernel), config.shared_bytes(), device.index);
      !status.ok()) {
    return status;
  }
  Arguments arguments = arguments_of<Shape::product, config>(problem, operands);
  const int blocks = std::min(arguments.tiles, device.multiprocessors);
  constexpr std::int64_t most_tokens = most_blocks_y * config.tokens();
  for (; arguments.first_token < operands.tokens; arguments.first_token += most_tokens) {
    const std::int64_t tokens = std::min(operands.tokens - arguments.first_token, most_tokens);
    const dim3 grid(static_cast<unsigned>(blocks),
                    static_cast<unsigned>((tokens + config.tokens() - 1) / config.tokens()));
    if (Status status = launch_kernel_early<kernel>({grid, dim3(Config::threads), config.shared_bytes()}, device.index,
                                                    stream, arguments);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

// What a kernel is made of.
template <const Config& tile, class E, Product p>
struct Shape {
  static constexpr Config config = tile;
  static constexpr Product product = p;
  using Element = E;
  using Loads = WeightRing<product, config>;
  using Epilogue = decode::Epilogue<Element, product, config>;
};

// By rows and tokens. One stage is for devices that have 99 KiB of shared memory for a block.
inline constexpr Config tile_16x8{};
inline constexpr Config tile_32x16{
    .token_groups = 2, .row_groups = 2, .steps = Config::run_steps / 2, .sum_buffers = 1};
inline constexpr Config tile_32x32{
    .token_groups = 4, .row_groups = 2, .steps = Config::run_steps / 2, .sum_buffers = 1};
inline constexpr Config single_16x8{.stages = 1};
inline constexpr Config single_32x16{
    .token_groups = 2, .row_groups = 2, .steps = Config::run_steps / 2, .stages = 1, .sum_buffers = 1};
inline constexpr Config single_32x32{
    .token_groups = 4, .row_groups = 2, .steps = Config::run_steps / 2, .stages = 1, .sum_buffers = 1};
// And by the terms of the sums for which x stays in registers.
inline constexpr Config resident_16x8_2048{.resident_runs = 1};
inline constexpr Config resident_16x8_4096{.resident_runs = 2};
inline constexpr Config resident_16x8_8192{.resident_runs = 4};

template <const Config& tile, class Element, Product product>
constexpr Kernel kernel_of() {
  return {product, tile, launch<Shape<tile, Element, product>>};
}

// In the order of their tokens.
template <class Element, Product product>
constexpr std::array kernels_of{
    kernel_of<tile_16x8, Element, product>(),          kernel_of<resident_16x8_2048, Element, product>(),
    kernel_of<resident_16x8_4096, Element, product>(), kernel_of<resident_16x8_8192, Element, product>(),
    kernel_of<single_16x8, Element, product>(),        kernel_of<tile_32x16, Element, product>(),
    kernel_of<single_32x16, Element, product>(),       kernel_of<tile_32x32, Element, product>(),
    kernel_of<single_32x32, Element, product>(),
};

}  // namespace gatefold::cuda::decode
