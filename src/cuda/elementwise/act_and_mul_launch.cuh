#pragma once

#include "cuda/common/activation.cuh"
#include "cuda/common/device.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/common/specialise.hpp"
#include "cuda/elementwise/act_and_mul_kernel.cuh"

namespace gatefold::cuda {

// The operands as the kernel sees them with units of `unit_elements`. If no row is followed by padding, all of them are
// one long row.
inline ActAndMulParams act_and_mul_params(const Problem& p, const Operands& o, std::int64_t unit_elements) {
  const std::int64_t size = size_of(p.types.x);
  const HalfView gate = half_view(p, o, Half::gate);
  const HalfView up = half_view(p, o, Half::up);
  const std::int64_t F = p.intermediate_size;
  const bool alternating = p.layout.interleaved() && p.layout.block < unit_elements;
  const std::int64_t run = p.layout.interleaved() && !alternating ? p.layout.block / unit_elements : 0;
  const bool one_row = run == 0 && p.ld_out == F &&
                       (alternating ? p.ld_gate == 2 * F : !p.layout.packed() && p.ld_gate == F && p.ld_up == F);

  ActAndMulParams params{};
  params.gate = gate.base + (alternating ? 0 : gate.map.first * size);
  params.up = alternating ? nullptr : up.base + up.map.first * size;
  params.out = o.out;
  params.gate_stride = gate.ld * size;
  params.up_stride = up.ld * size;
  params.out_stride = p.ld_out * size;
  params.rows = one_row ? 1 : o.tokens;
  params.columns = (one_row ? o.tokens * F : F) / unit_elements;
  params.run_shift = run > 0 ? std::countr_zero(static_cast<std::uint64_t>(run)) : 62;
  if (run > 1) params.any_run = AnyRun(run);
  params.run_mask = (std::int64_t{1} << params.run_shift) - 1;
  params.run_period = 2 * run;
  params.up_first = p.layout.up_first();
  return params;
}

// Whether the halves alternate in runs that a shift cannot find. Runs of whole units are, if the layout's blocks are.
inline bool has_odd_runs(const Problem& p) {
  return p.layout.interleaved() && !std::has_single_bit(static_cast<std::uint64_t>(p.layout.block));
}

// Is there nothing but one row of each tensor, from end to end?
inline bool is_one_row(const ActAndMulParams& p) { return p.rows == 1 && p.run_period == 0; }

// Where each of a thread's units lies, from its first. A step that no tile has is as far away as can be.
inline void fill_steps(ActAndMulParams& params, std::int64_t unit_bytes, std::int64_t input_unit_bytes) {
  const TileShape& tile = params.tile;
  const std::int64_t lanes = std::int64_t{1} << tile.log2_lanes;
  const std::int64_t row_step = std::int64_t{1} << (tile.log2_threads - tile.log2_lanes);
  for (int i = 0; i < ActAndMulParams::most_units; ++i) {
    const std::int64_t rows = (i >> tile.log2_column_steps) * row_step;
    const std::int64_t columns = (i & ((1 << tile.log2_column_steps) - 1)) * lanes;
    const std::int64_t input = params.input_column<Runs::powers_of_two>(columns) * input_unit_bytes;
    const bool used = i < 1 << (tile.log2_column_steps + tile.log2_row_steps);
    params.steps[i] = {rows * params.gate_stride + input, rows * params.up_stride + input,
                       rows * params.out_stride + columns * unit_bytes,
                       used ? static_cast<std::int32_t>(rows) : 0x7fffffff, static_cast<std::int32_t>(columns)};
  }
}

template <class Config>
Status launch_act_and_mul(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                          cudaStream_t stream) {
  constexpr ActAndMulConfig config = Config::value;
  return with_element(problem.types.x, [&](auto element) {
    using Element = typename decltype(element)::type;
    ActAndMulParams params = act_and_mul_params(problem, operands, Unit<Element, config.access>::elements);
    if constexpr (Config::value.access == Access::vectors && Config::value.runs == Runs::powers_of_two) {
      const int threads = pick_row_threads(params.columns, device.multiprocessors);
      const std::int64_t blocks = ceil_div(params.columns, threads);
      if (is_one_row(params) && blocks <= most_blocks_x) {
        return with_activation(problem.activation.kind, [&](auto kind) {
          using Activation = GatedActivation<decltype(kind)::value>;
          return launch_kernel_early<act_and_mul_row_kernel<Element, Activation, Config>>(
              {.grid = dim3(static_cast<unsigned>(blocks)), .block = dim3(static_cast<unsigned>(threads))},
              device.index, stream, params.gate, params.up, params.out, params.columns, Activation(problem.activation));
        });
      }
    }
    params.tile = pick_tile(
        params.rows, params.columns, config.log2_threads,
        pick_log2_units(params.rows * params.columns, config.log2_threads, config.log2_units, device.multiprocessors));
    fill_steps(params, Unit<Element, config.access>::bytes, Unit<Element, config.access>::input_bytes);
    const BlockGrid grid =
        block_grid(ceil_div(params.columns, params.tile.columns()), ceil_div(params.rows, params.tile.rows()));
    if (!grid.fits) {
      return unsupported("tokens: ", operands.tokens, " x ", problem.intermediate_size,
                         " is more than a launch can take");
    }
    return with_activation(problem.activation.kind, [&](auto kind) {
      using Activation = GatedActivation<decltype(kind)::value>;
      return launch_kernel_early<act_and_mul_kernel<Element, Activation, Config>>(
          {.grid = dim3(grid.x, grid.y, grid.z), .block = dim3(config.threads())}, device.index, stream, params,
          Activation(problem.activation));
    });
  });
}

}  // namespace gatefold::cuda
