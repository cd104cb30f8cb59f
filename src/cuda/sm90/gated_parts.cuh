#pragma once

#include "cuda/common/combine.cuh"
#include "cuda/sm90/parts.cuh"

// gate_up of few columns and long sums, an expert of a mixture: DeepSeek-V3's have 2048 columns of 7168 terms, 32 tiles
// of 64 columns for 132 multiprocessors. As gemm's (parts.cuh), each tile's sums are divided among as many blocks as
// fill the device once. A second kernel adds the parts up, gate's and up's, and combines them:
//
//     k ->            part 0   part 1   ..
//     tile 0         | b0     | b32    |          workspace [parts, gate and up, T, F], fp32        h [T, F]
//     tile 1         | b1     | b33    |   --->                                      --->  act(gate) * up, rounded
//     ..
//
// Where two blocks of a cluster divide the sums of 128 tokens by 64 columns (split_128x128), each brings 128 + 128 rows
// for a k-step: with 200 tokens 209 MB from L2 in all. With all tokens in one tile it is 200 + 128 rows for 1.6 times
// the products, 150 MB, and 13 MB of parts.
namespace gatefold::cuda::sm90 {

struct GatedPartsToAdd {
  const float* sums;  // [parts, 2, tokens, columns]: gate's and up's
  std::int64_t half;  // elements from gate's sums to up's; twice as many to the next part
  std::int32_t parts;
  std::int32_t columns;  // a multiple of 8
  std::byte* out;        // [tokens, ld_out]
  std::int64_t ld_out;
  Combine combine;
  TileBias gate_bias, up_bias;
};

inline constexpr int gated_adders = 256;  // threads of a block

// A block makes h of 1024 columns of one token, of `most` parts or fewer: with room for four a thread has 48 registers,
// and five blocks share a multiprocessor; with room for eight 80, and three. The kernel after it may begin when
// everything before it has ended, no sooner: then that one's weights are settled (Executor::holds_back_the_next).
template <class Element, int most>
__global__ __launch_bounds__(gated_adders) void add_gated_parts(const GatedPartsToAdd a) {
  ptx::wait_for_previous_grid();
  ptx::launch_next_grid();
  const auto j = static_cast<std::int32_t>(blockIdx.y * gated_adders + threadIdx.x) * added_columns;
  if (j >= a.columns) return;
  const float* sums = a.sums + std::int64_t{blockIdx.x} * a.columns + j;
  const auto of_gate = load_parts<most>(sums, 2 * a.half, a.parts);
  const auto of_up = load_parts<most>(sums + a.half, 2 * a.half, a.parts);
  float gate[added_columns], up[added_columns];
  of_gate.add_up(gate);
  of_up.add_up(up);
  add_bias<Element>(a.gate_bias, j, gate);
  add_bias<Element>(a.up_bias, j, up);
  auto* out = reinterpret_cast<Element*>(a.out) + blockIdx.x * a.ld_out + j;
  a.combine.dispatch([&](auto act) {
    const Pair first = act(gate[0], up[0], gate[1], up[1]);
    const Pair second = act(gate[2], up[2], gate[3], up[3]);
    store_rounded(out, {first.low, first.high, second.low, second.high});
  });
}

template <class Shape>
Status launch_in_gated_parts(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                             cudaStream_t stream) {
  std::int32_t count = 0;
  if (Status status = leave_parts<Shape>(problem, operands, device, stream, count); !status.ok()) return status;
  const std::int64_t columns = problem.intermediate_size;
  const GatedPartsToAdd parts{.sums = reinterpret_cast<const float*>(operands.workspace),
                              .half = operands.tokens * columns,
                              .parts = count,
                              .columns = static_cast<std::int32_t>(columns),
                              .out = operands.out,
                              .ld_out = problem.ld_out,
                              .combine = Combine(problem.activation),
                              .gate_bias = TileBias(problem, operands, Half::gate),
                              .up_bias = TileBias(problem, operands, Half::up)};
  using Element = Stored<typename Shape::Element>;
  const auto blocks = static_cast<unsigned>(ceil_div(columns, std::int64_t{gated_adders} * added_columns));
  return launch_kernel(
      count > 4 ? add_gated_parts<Element, most_parts> : add_gated_parts<Element, 4>,
      {.grid = dim3(static_cast<unsigned>(operands.tokens), blocks), .block = dim3(gated_adders), .early = true},
      device.index, stream, parts);
}

// For 129 to 160 and 161 to 208 tokens, by blocks of their own: one warpgroup has gate's 64 rows of a tile, the other
// up's. With fewer tokens, and with more, two blocks of a cluster that divide the sums are as fast, but for 5 % of one
// expert; pairs that share the tokens are slower (results/h200/gated_parts_trial.json).
constexpr Config gated_parts_of(int tile_m, int stages) {
  return {.tile_m = tile_m, .tile_n = 128, .stages = stages, .swap_ab = true};
}
inline constexpr Config gated_parts_160x128 = gated_parts_of(160, 6);
inline constexpr Config gated_parts_208x128 = gated_parts_of(208, 5);

template <const Config& tile, class E>
constexpr Kernel gated_kernel_in_parts(double teraflops) {
  using S = Shape<tile, E, Product::gated_parts>;
  return {S::config, teraflops, launch_in_gated_parts<S>, resident_clusters<S>};
}

template <class E>
constexpr std::array gated_kernels_in_parts{
    gated_kernel_in_parts<gated_parts_160x128, E>(740.0),
    gated_kernel_in_parts<gated_parts_208x128, E>(870.0),
};

}  // namespace gatefold::cuda::sm90
