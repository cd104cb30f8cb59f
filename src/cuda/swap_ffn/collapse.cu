#include "cuda/common/activation.cuh"
#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

namespace gatefold::cuda::swap_ffn {

constexpr int collapse_warps = 8;
constexpr int collapse_sequences = 8;  // that share each element of the basis
constexpr int collapse_early = 4;      // pieces of a lane, 1024 columns of 16 bits

// A block for one element of q of eight sequences. Warp w sums heads w, w + 8, ..., and the warps' sums are added in
// their order.
template <class Element, bool vectors>
__global__ void __launch_bounds__(32 * collapse_warps)
    collapse_kernel(const std::byte* basis, const float* pooled, float* q, std::int64_t batch, std::int64_t heads,
                    std::int64_t width, std::int64_t columns) {
  using ThisPiece = Piece<Element, vectors>;
  __shared__ float sums[collapse_warps][collapse_sequences];
  ptx::launch_next_grid();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t r = std::int64_t{blockIdx.x} % width;
  const std::int64_t first = std::int64_t{blockIdx.x} / width * collapse_sequences;
  const std::int64_t pieces = columns / ThisPiece::elements;
  const auto load = [&](std::int64_t k, std::int64_t piece) {
    return ThisPiece::load(basis, (k * width + r) * pieces + piece);
  };
  // The first pieces of the warp's first head come while the kernel before ends: it is the step's own (start.cu).
  typename ThisPiece::Raw early[collapse_early];
#pragma unroll
  for (int i = 0; i < collapse_early; ++i) {
    const std::int64_t piece = lane + 32 * i;
    early[i] = warp < heads && piece < pieces ? load(warp, piece) : ThisPiece::nothing();
  }
  ptx::wait_for_previous_grid();

  float mine[collapse_sequences] = {};
  const auto add = [&](const typename ThisPiece::Raw& raw, std::int64_t k, std::int64_t piece) {
    float weights[ThisPiece::elements];
    ThisPiece::unpack(raw, weights);
#pragma unroll
    for (int b = 0; b < collapse_sequences; ++b) {
      if (first + b >= batch) break;
      float values[ThisPiece::elements];
      load_floats(pooled + ((first + b) * heads + k) * columns + piece * ThisPiece::elements, values);
#pragma unroll
      for (int i = 0; i < ThisPiece::elements; ++i) mine[b] = fmaf(weights[i], values[i], mine[b]);
    }
  };
#pragma unroll
  for (int i = 0; i < collapse_early; ++i) {
    const std::int64_t piece = lane + 32 * i;
    if (warp < heads && piece < pieces) add(early[i], warp, piece);
  }
  for (std::int64_t k = warp; k < heads; k += collapse_warps) {
#pragma unroll 1
    for (std::int64_t piece = lane + (k == warp ? 32 * collapse_early : 0); piece < pieces; piece += 32) {
      add(load(k, piece), k, piece);
    }
  }
#pragma unroll
  for (int b = 0; b < collapse_sequences; ++b) {
    const float sum = warp_sum(mine[b]);
    if (lane == 0) sums[warp][b] = sum;
  }
  __syncthreads();
  const int b = static_cast<int>(threadIdx.x);
  if (b >= collapse_sequences || first + b >= batch) return;
  float total = 0.0F;
#pragma unroll
  for (int w = 0; w < collapse_warps; ++w) total += sums[w][b];
  q[(first + b) * width + r] = GatedActivation<ActivationKind::silu>::act(total);
}

Status collapse(const Sizes& sizes, const std::byte* basis, const float* pooled, float* q, const Queue& queue) {
  const bool vectors = takes_vectors(sizes.hidden_size * size_of(sizes.dtype), {basis, pooled});
  unsigned blocks = 0;
  const std::int64_t groups = ceil_div(sizes.batch, std::int64_t{collapse_sequences});
  if (Status status = block_count(groups * sizes.collapse_width, 1, blocks); !status.ok()) return status;
  return with_pieces(sizes.dtype, vectors, [&](auto element, auto by_vectors) {
    return launch_kernel_early<collapse_kernel<typename decltype(element)::type, by_vectors.value>>(
        {.grid = dim3(blocks), .block = dim3(32 * collapse_warps)}, queue.device, queue.stream, basis, pooled, q,
        sizes.batch, sizes.collapse_heads, sizes.collapse_width, sizes.hidden_size);
  });
}

}  // namespace gatefold::cuda::swap_ffn
