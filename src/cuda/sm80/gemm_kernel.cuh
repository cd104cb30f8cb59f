#pragma once

#include <type_traits>

#include "cuda/sm80/epilogue.cuh"
#include "cuda/sm80/mainloop.cuh"
#include "cuda/sm80/rolling_mainloop.cuh"

namespace gatefold::cuda::sm80 {

// A persistent kernel: as many blocks as fit on the device walk over the tiles of the output. The main loop's copies
// run ahead across tile boundaries, so the epilogue of one tile overlaps with the loading of the next.
//
// Build: a type with `static constexpr Config config`. (nvcc 13.0 writes host code that does not compile for a
// __global__ template whose argument is the Config itself.)
template <class Build>
__global__ void __launch_bounds__(Build::config.threads(), Build::config.blocks_per_sm)
    gemm_kernel(const __grid_constant__ typename ParamsOf<Build>::Type params) {
  constexpr Config C = Build::config;
  using Layouts = TileLayouts<C>;
  using Element = typename Layouts::Element;
  extern __shared__ __align__(1024) std::byte shared[];
  auto* staging = reinterpret_cast<Element*>(shared + C.stages * C.stage_bytes());

  using Products = std::conditional_t<C.rolling, RollingMainloop<C>, Mainloop<C>>;
  Products mainloop(params, cute::cast_smem_ptr_to_uint(shared));
  Epilogue<C> epilogue(params, staging);
  auto tCrC = cute::partition_fragment_C(typename Layouts::TiledMma{},
                                         cute::Shape<cute::Int<C.tile_m>, cute::Int<C.tile_n>>{});  // (MMA,MMA_M,MMA_N)
  for (TileScheduler<C> tiles(params); tiles.valid(); tiles.advance()) {
    cute::clear(tCrC);
    epilogue.prefetch(tiles.coord());
    mainloop.run(tiles.coord().thirds, tCrC);
    if constexpr (C.op == Op::gemm_gated) mainloop.wait_for_older_copies();
    epilogue.store(tiles.coord(), tCrC);  // worked out again: held, it would take registers from the main loop
  }
  Products::end();
}

}  // namespace gatefold::cuda::sm80
