#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm80/tile_layouts.hpp"

namespace gatefold::cuda::sm80 {

// A persistent kernel: as many blocks as fit on the device walk over the tiles of the output. The main loop's copies
// run ahead across tile boundaries, so the epilogue of one tile overlaps with the loading of the next.
//
// Shape: the policies that it is made of (shape.cuh).
template <class Shape>
__global__ void __launch_bounds__(Shape::config.threads(), Shape::config.blocks_per_sm)
    gemm_kernel(const __grid_constant__ typename Shape::Loads::Arguments params) {
  constexpr Config C = Shape::config;
  using Layouts = TileLayouts<C>;
  extern __shared__ __align__(1024) std::byte shared[];
  auto* staging = reinterpret_cast<typename Shape::Element*>(shared + C.stages * C.stage_bytes());

  typename Shape::Mainloop mainloop(params, cute::cast_smem_ptr_to_uint(shared));
  typename Shape::Epilogue epilogue(params, staging);
  auto tCrC = cute::partition_fragment_C(typename Layouts::TiledMma{},
                                         cute::Shape<cute::Int<C.tile_m>, cute::Int<C.tile_n>>{});  // (MMA,MMA_M,MMA_N)
  for (typename Shape::Scheduler tiles(params); tiles.valid(); tiles.advance()) {
    cute::clear(tCrC);
    epilogue.prefetch(tiles.coord());
    mainloop.run(tiles.coord().thirds, tCrC);
    if constexpr (Shape::Epilogue::reads_a_tile) mainloop.wait_for_older_copies();
    epilogue.store(tiles.coord(), tCrC);  // worked out again: held, it would take registers from the main loop
  }
  Shape::Mainloop::end();
}

}  // namespace gatefold::cuda::sm80
