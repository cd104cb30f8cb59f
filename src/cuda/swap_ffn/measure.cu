#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

namespace gatefold::cuda::swap_ffn {

constexpr int measure_warps = 4;

// A warp for each row.
template <class Element, bool vectors>
__global__ void __launch_bounds__(32 * measure_warps)
    measure_kernel(const std::byte* s, std::int64_t rows, std::int64_t columns, double eps, float* inverse_rms) {
  using ThisPiece = Piece<Element, vectors>;
  ptx::launch_next_grid();
  const std::int64_t row = std::int64_t{blockIdx.x} * measure_warps + threadIdx.x / 32;
  const std::int64_t pieces = columns / ThisPiece::elements;
  ptx::wait_for_previous_grid();
  if (row >= rows) return;
  double squares = 0.0;
#pragma unroll 4
  for (std::int64_t piece = threadIdx.x % 32; piece < pieces; piece += 32) {
    float values[ThisPiece::elements];
    ThisPiece::unpack(ThisPiece::load(s, row * pieces + piece), values);
    squares = add_squares(squares, values);
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) inverse_rms[row] = inverse_rms_of(squares, columns, eps);
}

Status measure(const Sizes& sizes, const std::byte* s, float* inverse_rms, const Queue& queue) {
  const bool vectors = takes_vectors(sizes.hidden_size * size_of(sizes.dtype), {s});
  unsigned blocks = 0;
  if (Status status = block_count(sizes.rows(), measure_warps, blocks); !status.ok()) return status;
  return with_pieces(sizes.dtype, vectors, [&](auto element, auto by_vectors) {
    return launch_kernel_early<measure_kernel<typename decltype(element)::type, by_vectors.value>>(
        {.grid = dim3(blocks), .block = dim3(32 * measure_warps)}, queue.device, queue.stream, s, sizes.rows(),
        sizes.hidden_size, sizes.eps, inverse_rms);
  });
}

}  // namespace gatefold::cuda::swap_ffn
