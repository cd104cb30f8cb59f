#include "cuda/common/launch.hpp"
#include "cuda/swap_ffn/route_kernel.cuh"
#include "cuda/swap_ffn/route_rows.hpp"

namespace gatefold::cuda::swap_ffn {
namespace {

template <class Element, int rows, bool vectors>
Status launch_route(const RouteParams& params, const Queue& queue) {
  unsigned blocks = 0;
  if (Status status = block_count(params.rows, rows, blocks); !status.ok()) return status;
  return launch_kernel_early<route_kernel<Element, rows, vectors>>(
      {.grid = dim3(blocks), .block = dim3(RouteTile::threads)}, queue.device, queue.stream, params);
}

}  // namespace

Status route(const Sizes& sizes, const Route& operands, const Queue& queue) {
  const RouteParams params{operands, sizes.rows(), sizes.hidden_size, sizes.router_width, sizes.eps};
  const bool vectors = takes_vectors(sizes.hidden_size * size_of(sizes.dtype),
                                     {operands.s, operands.ram, operands.router_w, operands.router_norm});
  return with_pieces(sizes.dtype, vectors, [&](auto element, auto by_vectors) -> Status {
    using Element = typename decltype(element)::type;
    if constexpr (by_vectors.value) {
      if (rows_of_route_block(params.rows) == 8) return launch_route<Element, 8, true>(params, queue);
    }
    return launch_route<Element, 4, by_vectors.value>(params, queue);
  });
}

}  // namespace gatefold::cuda::swap_ffn
