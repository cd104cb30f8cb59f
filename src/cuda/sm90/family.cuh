#pragma once

#include <array>

#include "cuda/sm90/launch.cuh"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm90.md).
namespace gatefold::cuda::sm90 {

struct TileShape {
  int m, n, stages, cluster_m, cluster_n;
  bool pingpong;
  bool transposed = false;
};

// Many tokens: the fewest bytes per product, since blocks that share tokens bring 128 + 192 rows each, where blocks
// that share weights would 256 + 96. 176 columns are 163 tiles of Llama 8B: with 1024 tokens, or 512 of 70B, 4.94
// rounds of 132 multiprocessors.
inline constexpr TileShape tile_256x192{256, 192, 3, 1, 2, false};
inline constexpr TileShape tile_256x176{256, 176, 3, 1, 2, false};
// From 256 tokens. 14336 and 28672, the columns of Llama 8B and 70B, are 128 and 256 tiles of 224: with 132
// multiprocessors no other width wastes as little.
inline constexpr TileShape tile_128x256{128, 256, 4, 2, 1, false};
inline constexpr TileShape tile_128x224{128, 224, 4, 2, 1, false};
inline constexpr TileShape tile_128x160{128, 160, 5, 2, 1, true};
// Up to 128 tokens there is no second token tile to share weights with: blocks share tokens, or nothing. 208: 405B's
// 53248 columns are 3.88 rounds.
inline constexpr TileShape row_128x224{128, 224, 4, 1, 2, false};
inline constexpr TileShape row_128x208{128, 208, 4, 1, 2, false};
inline constexpr TileShape tile_128x128{128, 128, 5, 1, 1, true};
// Tokens that leave much of tiles of 128 and 256 empty: 129 to 160, up to 192, and twice as many. Their columns are
// 128, since a warpgroup takes 64 rows of gate and 64 of up.
inline constexpr TileShape tile_160x256{160, 256, 3, 1, 2, false, true};
inline constexpr TileShape tile_192x256{192, 256, 3, 1, 2, false, true};

template <const TileShape& tile, class E, bool is_gated>
struct Shape {
  static constexpr Config config{tile.m,   tile.n,        tile.stages,    2, tile.cluster_m, tile.cluster_n,
                                 is_gated, tile.pingpong, tile.transposed};
  using Element = E;
};

template <const TileShape& tile, class E, bool is_gated>
constexpr Kernel kernel_of(double teraflops) {
  using S = Shape<tile, E, is_gated>;
  return {S::config, teraflops, launch<S>};
}

// Their rates are fitted to results/h200/sm90_tiles.json, of gate_up in bf16, together with the constants of
// cost_model.cpp. But 128x256, which the fit has at 717.5, is lower: 32 ms there flatter it. Of the large products,
// where it was 2 % behind 256x192, it had been 3.3 % behind after 50 ms; and the rate decides beyond the 8192 tokens
// measured.
template <class E>
constexpr std::array gated_kernels{
    kernel_of<tile_256x192, E, true>(723.5), kernel_of<tile_256x176, E, true>(710.0),
    kernel_of<tile_128x256, E, true>(710.0), kernel_of<tile_128x224, E, true>(698.0),
    kernel_of<tile_128x160, E, true>(681.5), kernel_of<row_128x224, E, true>(685.0),
    kernel_of<row_128x208, E, true>(683.0),  kernel_of<tile_128x128, E, true>(649.5),
    kernel_of<tile_160x256, E, true>(700.5), kernel_of<tile_192x256, E, true>(708.0),
};

template <class E>
constexpr std::array plain_kernels{
    kernel_of<tile_256x192, E, false>(723.5), kernel_of<tile_256x176, E, false>(710.0),
    kernel_of<tile_128x256, E, false>(710.0), kernel_of<tile_128x224, E, false>(698.0),
    kernel_of<tile_128x128, E, false>(649.5),
};

}  // namespace gatefold::cuda::sm90
