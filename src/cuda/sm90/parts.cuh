#pragma once

#include "core/arithmetic.hpp"
#include "cuda/common/bias.cuh"
#include "cuda/common/ptx.cuh"
#include "cuda/sm90/family.cuh"

// gemm of few columns and long sums, a small model's down-projection: Llama 1B's, 2048 columns of 8192, is 16 tiles of
// 128x128 for each 128 tokens, for 132 multiprocessors. Here each tile's sums are divided among as many blocks as fill
// the device once. They leave their parts in the workspace, and a second kernel adds those up:
//
//     k ->            part 0   part 1   ..
//     tile 0         | b0     | b16    |          workspace [parts, T, F], fp32      out [T, F]
//     tile 1         | b1     | b17    |   --->   (L2 holds it: 64 KiB a block) --->  sums + bias, rounded
//     ..
//
// Two blocks of a cluster that exchange their sums (divided.cuh) need no second kernel, but no more than two divide
// those of a tile: clusters of four and eight leave multiprocessors without work. In order of the parts: the same bits
// in every run on a device.
//
// Up to 128 tokens there are tiles of several widths, so that some number of parts fills the device for most numbers of
// columns: 5120 are 64 tiles of 80 in two parts, 3584 are 32 of 112 in four.
namespace gatefold::cuda::sm90 {

struct PartsToAdd {
  const float* sums;  // [parts, tokens, columns]
  std::int64_t part;  // elements from one part to the next
  std::int32_t parts;
  std::int32_t columns;  // a multiple of 8
  std::byte* out;        // [tokens, ld_out]
  std::int64_t ld_out;
  TileBias bias;
};

inline constexpr int added_columns = 4;  // of a thread at a time, 16 bytes of each part
inline constexpr int most_adders = 512;  // threads of a block

// The parts of some columns' sums, `most` or fewer: all are on their way before the first is used.
template <int most>
struct PartsOfColumns {
  float4 of_part[most];
  std::int32_t parts;

  __device__ void add_up(float (&sum)[added_columns]) const {
    float4 all = of_part[0];
#pragma unroll
    for (int part = 1; part < most; ++part) {
      if (part >= parts) break;
      all.x += of_part[part].x;
      all.y += of_part[part].y;
      all.z += of_part[part].z;
      all.w += of_part[part].w;
    }
    sum[0] = all.x, sum[1] = all.y, sum[2] = all.z, sum[3] = all.w;
  }
};

// stride: elements from one part to the next.
template <int most>
__device__ PartsOfColumns<most> load_parts(const float* sums, std::int64_t stride, std::int32_t parts) {
  PartsOfColumns<most> result;
  result.parts = parts;
#pragma unroll
  for (int part = 0; part < most; ++part) {
    if (part < parts) result.of_part[part] = *reinterpret_cast<const float4*>(sums + part * stride);
  }
  return result;
}

// To the sums of columns from j on.
template <class Element>
__device__ void add_bias(const TileBias& bias, std::int32_t j, float (&sum)[added_columns]) {
  if (!bias.is_there()) return;
#pragma unroll
  for (int i = 0; i < added_columns; ++i) sum[i] += bias.at<Element>(static_cast<std::uint32_t>(j + i));
}

template <class Element>
__device__ void store_rounded(Element* out, const float (&values)[added_columns]) {
  *reinterpret_cast<uint2*>(out) = {Word<Element>::pack(values), Word<Element>::pack(values + 2)};
}

// A block adds up the parts of one token.
template <class Element>
__global__ __launch_bounds__(most_adders) void add_parts(const PartsToAdd a) {
  ptx::launch_next_grid();
  ptx::wait_for_previous_grid();
  const float* sums = a.sums + std::int64_t{blockIdx.x} * a.columns;
  auto* out = reinterpret_cast<Element*>(a.out) + blockIdx.x * a.ld_out;
  for (auto j = static_cast<std::int32_t>(threadIdx.x) * added_columns; j < a.columns;
       j += static_cast<std::int32_t>(blockDim.x) * added_columns) {
    float sum[added_columns];
    load_parts<most_parts>(sums + j, a.part, a.parts).add_up(sum);
    add_bias<Element>(a.bias, j, sum);
    store_rounded(out + j, sum);
  }
}

// Enqueues what leaves the parts in the workspace, and says how many they are.
template <class Shape>
Status leave_parts(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                   cudaStream_t stream, std::int32_t& parts) {
  int clusters = 0;
  if (Status status = resident_clusters<Shape>(device, clusters); !status.ok()) return status;
  parts = parts_of(Shape::config, problem, operands.tokens, clusters);
  return launch<Shape>(problem, operands, device, stream);
}

template <class Shape>
Status launch_in_parts(const Problem& problem, const Operands& operands, const DeviceProperties& device,
                       cudaStream_t stream) {
  std::int32_t count = 0;
  if (Status status = leave_parts<Shape>(problem, operands, device, stream, count); !status.ok()) return status;
  const std::int64_t columns = problem.intermediate_size;
  const std::int64_t threads = std::min<std::int64_t>(ceil_div(columns, 32 * added_columns) * 32, most_adders);
  const PartsToAdd parts{.sums = reinterpret_cast<const float*>(operands.workspace),
                         .part = operands.tokens * columns,
                         .parts = count,
                         .columns = static_cast<std::int32_t>(columns),
                         .out = operands.out,
                         .ld_out = problem.ld_out,
                         .bias = TileBias(problem, operands, Half::up)};
  return launch_kernel(add_parts<Stored<typename Shape::Element>>,
                       {.grid = dim3(static_cast<unsigned>(operands.tokens)),
                        .block = dim3(static_cast<unsigned>(threads)),
                        .early = true},
                       device.index, stream, parts);
}

// Of one row of tiles by blocks of their own: one fills its ring as soon as its multiprocessor is free, while others
// are still in the kernel before. Of more rows by blocks that share the weights.
inline constexpr Config parts_64x64{.tile_m = 64, .tile_n = 64, .stages = 12, .warpgroups = 1};
inline constexpr Config parts_64x80{.tile_m = 64, .tile_n = 80, .stages = 11, .warpgroups = 1};
inline constexpr Config parts_64x96{.tile_m = 64, .tile_n = 96, .stages = 10, .warpgroups = 1};
inline constexpr Config parts_64x112{.tile_m = 64, .tile_n = 112, .stages = 9, .warpgroups = 1};
inline constexpr Config parts_64x128{.tile_m = 64, .tile_n = 128, .stages = 9, .warpgroups = 1};
inline constexpr Config parts_128x64{.tile_m = 128, .tile_n = 64, .stages = 9};
inline constexpr Config parts_128x80{.tile_m = 128, .tile_n = 80, .stages = 8};
inline constexpr Config parts_128x96{.tile_m = 128, .tile_n = 96, .stages = 7};
inline constexpr Config parts_128x112{.tile_m = 128, .tile_n = 112, .stages = 7};
inline constexpr Config parts_128x128{.tile_m = 128, .tile_n = 128, .stages = 6};
// From 129 tokens on, all of them in one tile, or up to 320 in two that share the weights: weight rows are the rows of
// the wgmma, so that a tile is as wide as the tokens need. Four parts of Llama 8B's 32 tiles of 128 columns are 128
// blocks: 41.3 us with 136 tokens, where two blocks for each of 64 tiles of 128 tokens, half of them nearly empty,
// take 47.1.
constexpr Config parts_swap_ab(int tile_m, int stages, int cluster_m = 1) {
  return {.tile_m = tile_m, .tile_n = 128, .stages = stages, .cluster_m = cluster_m, .swap_ab = true};
}
inline constexpr Config parts_160x128 = parts_swap_ab(160, 6);
inline constexpr Config parts_192x128 = parts_swap_ab(192, 5);
inline constexpr Config parts_224x128 = parts_swap_ab(224, 5);
inline constexpr Config parts_256x128 = parts_swap_ab(256, 4);
inline constexpr Config parts_rows_160x128 = parts_swap_ab(160, 6, 2);
// Each warpgroup has half of the tokens and all columns: of 64, which are half as many parts of few columns, or of more
// tokens than a wgmma is wide, 4608 and 5120 columns in three parts.
constexpr Config parts_tokens_divided(int tile_m, int tile_n, int stages, int cluster_n) {
  return {.tile_m = tile_m,
          .tile_n = tile_n,
          .stages = stages,
          .cluster_n = cluster_n,
          .swap_ab = true,
          .tokens_divided = true};
}
inline constexpr Config parts_160x64 = parts_tokens_divided(160, 64, 7, 1);
inline constexpr Config parts_192x64 = parts_tokens_divided(192, 64, 7, 1);
inline constexpr Config parts_320x128 = parts_tokens_divided(320, 128, 4, 2);
inline constexpr Config parts_rows_128x128{.tile_m = 128, .tile_n = 128, .stages = 6, .cluster_m = 2};
inline constexpr Config parts_rows_128x192{.tile_m = 128, .tile_n = 192, .stages = 5, .cluster_m = 2};

template <const Config& tile, class E>
constexpr Kernel kernel_in_parts(double teraflops) {
  using S = Shape<tile, E, Product::parts>;
  return {S::config, teraflops, launch_in_parts<S>, resident_clusters<S>};
}

template <class E>
constexpr std::array kernels_in_parts{
    kernel_in_parts<parts_64x64, E>(476.5),        kernel_in_parts<parts_64x80, E>(476.5),
    kernel_in_parts<parts_64x96, E>(476.5),        kernel_in_parts<parts_64x112, E>(476.5),
    kernel_in_parts<parts_64x128, E>(476.5),       kernel_in_parts<parts_128x64, E>(485.0),
    kernel_in_parts<parts_128x80, E>(508.0),       kernel_in_parts<parts_128x96, E>(511.0),
    kernel_in_parts<parts_128x112, E>(530.0),      kernel_in_parts<parts_128x128, E>(540.0),
    kernel_in_parts<parts_rows_128x128, E>(720.0), kernel_in_parts<parts_rows_128x192, E>(700.0),
    kernel_in_parts<parts_160x128, E>(600.0),      kernel_in_parts<parts_192x128, E>(640.0),
    kernel_in_parts<parts_224x128, E>(675.0),      kernel_in_parts<parts_256x128, E>(640.0),
    kernel_in_parts<parts_rows_160x128, E>(670.0), kernel_in_parts<parts_160x64, E>(640.0),
    kernel_in_parts<parts_192x64, E>(690.0),       kernel_in_parts<parts_320x128, E>(607.0),
};

}  // namespace gatefold::cuda::sm90
