#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

namespace gatefold::cuda::swap_ffn {

constexpr int delta_warps = 8;
constexpr int delta_sequences = 8;  // that share each element of the decoder
constexpr int delta_early = 8;      // weights of a lane, 256 of a row

// A warp for one element of delta of eight sequences.
template <class Element>
__global__ void __launch_bounds__(32 * delta_warps)
    delta_kernel(const std::byte* decoder, const float* q, std::byte* delta, std::int64_t batch, std::int64_t columns,
                 std::int64_t width) {
  ptx::launch_next_grid();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t blocks_of_columns = (columns + delta_warps - 1) / delta_warps;
  const std::int64_t column = std::int64_t{blockIdx.x} % blocks_of_columns * delta_warps + threadIdx.x / 32;
  const std::int64_t first = std::int64_t{blockIdx.x} / blocks_of_columns * delta_sequences;
  const auto* const weights = reinterpret_cast<const Element*>(decoder) + column * width;
  // A lane's first weights come while the kernel before ends: it is the step's own (start.cu).
  float early[delta_early];
#pragma unroll
  for (int i = 0; i < delta_early; ++i) {
    const std::int64_t r = lane + 32 * i;
    early[i] = column < columns && r < width ? to_float(weights[r]) : 0.0F;
  }
  ptx::wait_for_previous_grid();
  if (column >= columns) return;
  float sums[delta_sequences] = {};
  const auto add = [&](float weight, std::int64_t r) {
#pragma unroll
    for (int b = 0; b < delta_sequences; ++b) {
      if (first + b < batch) sums[b] = fmaf(weight, q[(first + b) * width + r], sums[b]);
    }
  };
#pragma unroll
  for (int i = 0; i < delta_early; ++i) {
    if (lane + 32 * i < width) add(early[i], lane + 32 * i);
  }
  for (std::int64_t r = lane + 32 * delta_early; r < width; r += 32) add(to_float(weights[r]), r);
#pragma unroll
  for (int b = 0; b < delta_sequences; ++b) {
    const float sum = warp_sum(sums[b]);
    if (lane == b && first + b < batch) {
      reinterpret_cast<Element*>(delta)[(first + b) * columns + column] = from_float<Element>(sum);
    }
  }
}

Status write_delta(const Sizes& sizes, const std::byte* decoder, const float* q, std::byte* delta, const Queue& queue) {
  unsigned blocks = 0;
  const std::int64_t groups = ceil_div(sizes.batch, std::int64_t{delta_sequences});
  const std::int64_t columns = ceil_div(sizes.hidden_size, std::int64_t{delta_warps});
  if (Status status = block_count(groups * columns, 1, blocks); !status.ok()) return status;
  return with_element(sizes.dtype, [&](auto element) {
    return launch_kernel_early<delta_kernel<typename decltype(element)::type>>(
        {.grid = dim3(blocks), .block = dim3(32 * delta_warps)}, queue.device, queue.stream, decoder, q, delta,
        sizes.batch, sizes.hidden_size, sizes.collapse_width);
  });
}

}  // namespace gatefold::cuda::swap_ffn
