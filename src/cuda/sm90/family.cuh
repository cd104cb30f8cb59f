#pragma once

#include "cuda/sm90/launch.cuh"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm90.md).
namespace gatefold::cuda::sm90 {

//                     m    n  stages warpgroups cluster  gated pingpong
template <class E, bool is_gated>
struct Tile128x256 {
  static constexpr Config config{128, 256, 4, 2, 2, 1, is_gated, false};
  using Element = E;
};
template <class E, bool is_gated>
struct Tile256x192 {
  static constexpr Config config{256, 192, 3, 2, 2, 1, is_gated, false};
  using Element = E;
};
template <class E, bool is_gated>
struct Tile128x192 {
  static constexpr Config config{128, 192, 4, 2, 2, 1, is_gated, true};
  using Element = E;
};
// Alone in its cluster: for up to 128 tokens there is no second token tile to share weights with.
template <class E, bool is_gated>
struct Tile128x128 {
  static constexpr Config config{128, 128, 5, 2, 1, 1, is_gated, true};
  using Element = E;
};

template <class Shape>
constexpr Kernel kernel_of(double teraflops) {
  return {Shape::config, teraflops, launch<Shape>};
}

}  // namespace gatefold::cuda::sm90
