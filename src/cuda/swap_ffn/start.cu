#include "cuda/common/launch.hpp"
#include "cuda/common/ptx.cuh"
#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

namespace gatefold::cuda::swap_ffn {

constexpr int start_threads = 256;

// A thread for each piece of s. The kernels that follow may read the prepared weights before the kernels before them
// have ended. So the first of them may not begin until whatever came before the step has ended, which wrote those
// weights.
template <class Element, bool vectors>
__global__ void __launch_bounds__(start_threads)
    start_kernel(const std::byte* x, const float* core_scale, const float* core_shift, std::byte* s, std::int64_t rows,
                 std::int64_t columns, std::int64_t cores, std::uint32_t* counters, int count) {
  using ThisPiece = Piece<Element, vectors>;
  const std::int64_t pieces = columns / ThisPiece::elements;
  const std::int64_t index = std::int64_t{blockIdx.x} * start_threads + threadIdx.x;
  const std::int64_t row = index / pieces;
  const std::int64_t piece = index % pieces;
  ptx::wait_for_previous_grid();
  ptx::launch_next_grid();
  if (blockIdx.x == 0) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += start_threads) counters[i] = 0;
  }
  if (row >= rows) return;
  const std::int64_t table = row % cores * columns + piece * ThisPiece::elements;
  float values[ThisPiece::elements];
  float scale[ThisPiece::elements];
  float shift[ThisPiece::elements];
  ThisPiece::unpack(ThisPiece::load(x, row / cores * pieces + piece), values);
  load_floats(core_scale + table, scale);
  load_floats(core_shift + table, shift);
#pragma unroll
  for (int i = 0; i < ThisPiece::elements; ++i) values[i] = fmaf(values[i], scale[i], shift[i]);
  ThisPiece::store(s, row * pieces + piece, ThisPiece::pack(values));
}

Status start(const Sizes& sizes, const std::byte* x, const float* core_scale, const float* core_shift, std::byte* s,
             std::uint32_t* counters, int count, const Queue& queue) {
  const bool vectors = takes_vectors(sizes.hidden_size * size_of(sizes.dtype), {x, s, core_scale, core_shift});
  return with_pieces(sizes.dtype, vectors, [&](auto element, auto by_vectors) -> Status {
    using Element = typename decltype(element)::type;
    unsigned blocks = 0;
    const std::int64_t pieces = sizes.hidden_size / Piece<Element, by_vectors.value>::elements;
    if (Status status = block_count(sizes.rows() * pieces, start_threads, blocks); !status.ok()) return status;
    return launch_kernel_early<start_kernel<Element, by_vectors.value>>(
        {.grid = dim3(blocks), .block = dim3(start_threads)}, queue.device, queue.stream, x, core_scale, core_shift, s,
        sizes.rows(), sizes.hidden_size, sizes.cores, counters, count);
  });
}

}  // namespace gatefold::cuda::swap_ffn
