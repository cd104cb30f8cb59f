#pragma once

#include "cuda/sm90/launch.cuh"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm90.md).
namespace gatefold::cuda::sm90 {

//                     m    n  stages warpgroups cluster  gated pingpong
// Many tokens: the fewest bytes per product. Two widths, since a round of tiles more or less decides below 8192 tokens.
template <class E, bool is_gated>
struct Tile256x192 {
  static constexpr Config config{256, 192, 3, 2, 2, 1, is_gated, false};
  using Element = E;
};
template <class E, bool is_gated>
struct Tile256x160 {
  static constexpr Config config{256, 160, 3, 2, 1, 2, is_gated, false};
  using Element = E;
};
// From 256 tokens. 14336 and 28672, the columns of Llama 8B and 70B, are 128 and 256 tiles of 224: with 132
// multiprocessors no other width wastes as little.
template <class E, bool is_gated>
struct Tile128x256 {
  static constexpr Config config{128, 256, 4, 2, 2, 1, is_gated, false};
  using Element = E;
};
template <class E, bool is_gated>
struct Tile128x224 {
  static constexpr Config config{128, 224, 4, 2, 2, 1, is_gated, false};
  using Element = E;
};
template <class E, bool is_gated>
struct Tile128x160 {
  static constexpr Config config{128, 160, 5, 2, 2, 1, is_gated, true};
  using Element = E;
};
// Up to 128 tokens there is no second token tile to share weights with: blocks share tokens, or nothing.
template <class E, bool is_gated>
struct Tile128x224Row {
  static constexpr Config config{128, 224, 4, 2, 1, 2, is_gated, false};
  using Element = E;
};
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
