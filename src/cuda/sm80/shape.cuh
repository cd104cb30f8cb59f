#pragma once

#include "cuda/sm80/epilogue.cuh"
#include "cuda/sm80/line_loader.cuh"
#include "cuda/sm80/mainloop.cuh"
#include "cuda/sm80/on_sm90/box_stages.cuh"
#include "cuda/sm80/on_sm90/rolling_mainloop.cuh"
#include "cuda/sm80/stages.cuh"
#include "cuda/sm80/tile_loader.cuh"
#include "cuda/sm80/tile_scheduler.cuh"

// What a kernel is made of. Its template argument is a type, a shape, that names the policies; the kernel composes them
// and decides nothing itself:
//
//     config       the printable sizes, by which the host chooses                       config.hpp
//     Element      of the operands and of the output
//     Scheduler    which tile next                                                      tile_scheduler.cuh
//     Loads        the ring of k-tiles, and who fills it how; with all arguments        stages.cuh, on_sm90/
//     Mainloop     the products of a tile                                               mainloop.cuh, on_sm90/
//     Epilogue     what becomes of a tile's sums                                        epilogue.cuh
namespace gatefold::cuda::sm80 {

// The policies that a config's enums stand for, for a shape to name.
template <Copies, Config C, class Scheduler>
struct LoadsBy;
template <Config C, class Scheduler>
struct LoadsBy<Copies::any_rows, C, Scheduler> {
  using Type = Stages<C, TileLoader<C, Scheduler>>;
};
template <Config C, class Scheduler>
struct LoadsBy<Copies::lines, C, Scheduler> {
  using Type = Stages<C, LineLoader<C, Scheduler>>;
};
template <Config C, class Scheduler>
struct LoadsBy<Copies::boxes, C, Scheduler> {
  using Type = BoxStages<C, BoxLoader<C, Scheduler>>;
};

template <bool rolling, Config C, class Loads>
struct MainloopBy {
  using Type = Mainloop<C, Loads>;
};
template <Config C, class Loads>
struct MainloopBy<true, C, Loads> {
  using Type = RollingMainloop<C, Loads>;
};

// Of a tile of shapes.hpp. (nvcc 13.0 writes host code that does not compile for a __global__ template whose argument
// is the Config itself.)
template <class Tile>
struct Shape {
  static constexpr Config config = Tile::config;
  using Element = typename TileLayouts<config>::Element;
  using Scheduler = TileScheduler<config>;
  using Loads = typename LoadsBy<config.copies, config, Scheduler>::Type;
  using Mainloop = typename MainloopBy<config.rolling, config, Loads>::Type;
  using Epilogue = sm80::Epilogue<config>;
};

}  // namespace gatefold::cuda::sm80
