#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

namespace gatefold::cuda::swap_ffn {

constexpr int pool_columns = 16;
constexpr int pool_parts = 32;  // of the cores; part p has cores p, p + 32, ...
constexpr int pool_heads = 8;   // at a time

// A block sums 16 columns of one sequence over all its cores, for eight heads.
template <class Element>
__global__ void __launch_bounds__(pool_columns* pool_parts)
    pool_kernel(const std::byte* s, const float* alpha, float* pooled, std::int64_t cores, std::int64_t columns,
                std::int64_t heads) {
  __shared__ float sums[pool_parts][pool_heads][pool_columns];
  ptx::launch_next_grid();
  const int lane = static_cast<int>(threadIdx.x) % pool_columns;
  const int part = static_cast<int>(threadIdx.x) / pool_columns;
  const std::int64_t column = std::int64_t{blockIdx.x} * pool_columns + lane;
  const std::int64_t sequence = blockIdx.y;
  const std::int64_t first_head = std::int64_t{blockIdx.z} * pool_heads;
  const auto* const rows = reinterpret_cast<const Element*>(s) + sequence * cores * columns;
  ptx::wait_for_previous_grid();

  float mine[pool_heads] = {};
#pragma unroll 8
  for (std::int64_t core = part; core < cores; core += pool_parts) {
    const float value = column < columns ? to_float(rows[core * columns + column]) : 0.0F;
#pragma unroll
    for (int k = 0; k < pool_heads; ++k) {
      const float weight = first_head + k < heads ? alpha[core * heads + first_head + k] : 0.0F;
      mine[k] = fmaf(weight, value, mine[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < pool_heads; ++k) sums[part][k][lane] = mine[k];
  __syncthreads();
  if (part >= pool_heads || first_head + part >= heads || column >= columns) return;
  float total = 0.0F;
#pragma unroll
  for (int p = 0; p < pool_parts; ++p) total += sums[p][part][lane];
  pooled[(sequence * heads + first_head + part) * columns + column] = total;
}

Status pool(const Sizes& sizes, const std::byte* s, const float* alpha, float* pooled, const Queue& queue) {
  constexpr std::int64_t most = 65535;  // of a grid's second and third size
  unsigned blocks = 0;
  if (Status status = block_count(sizes.hidden_size, pool_columns, blocks); !status.ok()) return status;
  const std::int64_t groups = ceil_div(sizes.collapse_heads, std::int64_t{pool_heads});
  if (groups > most)
    return unsupported("collapse_heads: ", sizes.collapse_heads, ", a launch takes ", most * pool_heads);
  const std::int64_t D = sizes.hidden_size;
  return with_element(sizes.dtype, [&](auto element) -> Status {
    for (std::int64_t first = 0; first < sizes.batch; first += most) {
      const std::int64_t count = sizes.batch - first < most ? sizes.batch - first : most;
      Status status = launch_kernel_early<pool_kernel<typename decltype(element)::type>>(
          {.grid = dim3(blocks, static_cast<unsigned>(count), static_cast<unsigned>(groups)),
           .block = dim3(pool_columns * pool_parts)},
          queue.device, queue.stream, s + first * sizes.cores * D * size_of(sizes.dtype), alpha,
          pooled + first * sizes.collapse_heads * D, sizes.cores, D, sizes.collapse_heads);
      if (!status.ok()) return status;
    }
    return {};
  });
}

}  // namespace gatefold::cuda::swap_ffn
