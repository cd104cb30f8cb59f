#include "cuda/common/launch.hpp"
#include "cuda/swap_ffn/route_kernel.cuh"
#include "cuda/swap_ffn/route_mma_kernel.cuh"
#include "cuda/swap_ffn/route_rows.hpp"

namespace gatefold::cuda::swap_ffn {
namespace {

template <auto kernel>
Status launch_route(const RouteParams& params, int rows_of_block, int threads, const Queue& queue) {
  unsigned blocks = 0;
  if (Status status = block_count(params.rows, rows_of_block, blocks); !status.ok()) return status;
  return launch_kernel_early<kernel>({.grid = dim3(blocks), .block = dim3(static_cast<unsigned>(threads))},
                                     queue.device, queue.stream, params);
}

template <class Element, int rows, bool vectors>
Status plain(const RouteParams& params, const Queue& queue) {
  return launch_route<route_kernel<Element, rows, vectors>>(params, rows, RouteTile::threads, queue);
}

template <class Element, int tiles>
Status by_tensor_cores(const RouteParams& params, const Queue& queue) {
  return launch_route<route_mma_kernel<Element, tiles>>(params, tiles * RouteMmaTile::tile_rows, RouteMmaTile::threads,
                                                        queue);
}

}  // namespace

Status route(const Sizes& sizes, const Route& operands, const Queue& queue) {
  const RouteParams params{operands, sizes.rows(), sizes.hidden_size, sizes.router_width, sizes.eps};
  const bool vectors = takes_vectors(sizes.hidden_size * size_of(sizes.dtype),
                                     {operands.s, operands.ram, operands.router_w, operands.router_norm});
  return with_pieces(sizes.dtype, vectors, [&](auto element, auto by_vectors) -> Status {
    using Element = typename decltype(element)::type;
    if constexpr (!by_vectors.value) {
      return plain<Element, 4, false>(params, queue);
    } else if constexpr (std::is_same_v<Element, float>) {
      return rows_of_plain_route_block(params.rows) == 8 ? plain<Element, 8, true>(params, queue)
                                                         : plain<Element, 4, true>(params, queue);
    } else {
      switch (rows_of_route_block(params.rows)) {
        case 8: return by_tensor_cores<Element, 1>(params, queue);
        case 16: return by_tensor_cores<Element, 2>(params, queue);
        default: return by_tensor_cores<Element, 4>(params, queue);
      }
    }
  });
}

}  // namespace gatefold::cuda::swap_ffn
