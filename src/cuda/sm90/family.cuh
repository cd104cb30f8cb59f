#pragma once

#include <array>

#include "cuda/sm90/launch.cuh"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm90.md). tile_: of clusters
// of two that share tokens or weights; row_: tokens, where tile_ of the size shares weights; four_: of four; alone_:
// without clusters.
namespace gatefold::cuda::sm90 {

struct TileShape {
  int m, n, stages, cluster_m, cluster_n;
  bool pingpong;
  bool transposed = false;
  bool producers = true;
  int split_k = 1;
};
constexpr TileShape transposed(TileShape tile) {
  tile.transposed = true;
  return tile;
}
constexpr TileShape split(TileShape tile) {
  tile.split_k = 2;
  return tile;
}
constexpr TileShape self_fed(TileShape tile) {
  tile.producers = false;
  return tile;
}

// Many tokens: the fewest bytes per product, since blocks that share tokens bring 128 + 224 rows each, where blocks
// that share weights would 256 + 112. The accumulators of 208 and 224 columns need the producers' registers too. 14336
// and 28672, the columns of Llama 8B and 70B, are 128 and 256 tiles of 224, so that 132 multiprocessors waste least;
// 405B's 53248 are 512 of 208. Narrow ones make rounds of models of few columns, for which it takes too long that a
// cluster meets.
inline constexpr TileShape tile_256x224 = self_fed({256, 224, 3, 1, 2, false});
inline constexpr TileShape tile_256x208 = self_fed({256, 208, 3, 1, 2, false});
inline constexpr TileShape tile_256x192{256, 192, 3, 1, 2, false};
inline constexpr TileShape tile_256x176{256, 176, 3, 1, 2, false};
inline constexpr TileShape alone_256x176{256, 176, 3, 1, 1, false};
inline constexpr TileShape alone_256x128{256, 128, 4, 1, 1, false};
// From 129 tokens, where tiles of 256 would leave much empty or make too few: blocks share weights.
inline constexpr TileShape tile_128x256{128, 256, 4, 2, 1, false};
inline constexpr TileShape tile_128x224{128, 224, 4, 2, 1, false};
inline constexpr TileShape tile_128x192{128, 192, 4, 2, 1, true};
inline constexpr TileShape tile_128x160{128, 160, 5, 2, 1, true};
inline constexpr TileShape tile_128x144{128, 144, 5, 2, 1, true};
// Up to 128 tokens there is no second token tile to share weights with: blocks share tokens, or nothing. All weights
// come from memory once, and take least time where every multiprocessor brings as many: each width suits other models.
inline constexpr TileShape row_128x224{128, 224, 4, 1, 2, false};
inline constexpr TileShape row_128x208{128, 208, 4, 1, 2, false};
inline constexpr TileShape row_128x144{128, 144, 6, 1, 2, false};
inline constexpr TileShape alone_128x192{128, 192, 4, 1, 1, true};
inline constexpr TileShape alone_128x160{128, 160, 5, 1, 1, true};
inline constexpr TileShape alone_128x128{128, 128, 5, 1, 1, true};
inline constexpr TileShape alone_128x96{128, 96, 7, 1, 1, true};
inline constexpr TileShape alone_128x64{128, 64, 8, 1, 1, true};
// Too few tiles for all multiprocessors, of long sums (DeepSeek-V3's experts).
inline constexpr TileShape split_128x128 = split({128, 128, 5, 1, 1, false});
inline constexpr TileShape split_128x64 = split({128, 64, 8, 1, 1, false});
// Tokens that leave much of tiles of 128 and 256 empty: up to 80 or 96, 129 to 160, 192 and 208, and multiples. A
// warpgroup takes 64 rows of gate and 64 of up, 64 columns in turns. Four blocks that share tokens ask L2 for least,
// but a few multiprocessors belong to no cluster of four: that pays where memory is the bound.
inline constexpr TileShape alone_80x128 = transposed({80, 128, 6, 1, 1, true});
inline constexpr TileShape tile_96x128 = transposed({96, 128, 6, 1, 2, true});
inline constexpr TileShape four_96x128 = transposed({96, 128, 6, 1, 4, true});
inline constexpr TileShape tile_160x128 = transposed({160, 128, 5, 1, 2, true});
inline constexpr TileShape four_160x128 = transposed({160, 128, 5, 1, 4, true});
inline constexpr TileShape tile_192x128 = transposed({192, 128, 4, 1, 2, true});
inline constexpr TileShape tile_208x128 = transposed({208, 128, 4, 1, 2, true});
inline constexpr TileShape four_208x128 = transposed({208, 128, 4, 1, 4, true});

template <const TileShape& tile, class E, Product product>
struct Shape {
  static constexpr Config config{tile.m,          tile.n,         tile.stages, 2,
                                 tile.cluster_m,  tile.cluster_n, product,     tile.pingpong,
                                 tile.transposed, tile.producers, tile.split_k};
  using Element = E;
};

template <const TileShape& tile, class E, Product product>
constexpr Kernel kernel_of(double teraflops) {
  using S = Shape<tile, E, product>;
  return {S::config, teraflops, launch<S>, resident_clusters<S>};
}

// Their rates are fitted to results/h200/sm90_tiles.json, of gate_up in bf16, together with the constants of
// cost_model.cpp; those of 256x176 in pairs, 128x256 and 128x224 sharing weights, which only gemm has, are in
// proportion. That of 128x128 with divided sums is not: no cell that it is near the best in has arithmetic for a bound,
// and it reaches 607 where it has (12288 x 28672, 768 tokens). 256x224 and 256x208 have one rate, since the fit leaves
// open which is faster: rounds decide.
template <class E>
constexpr std::array gated_kernels{
    kernel_of<tile_256x224, E, Product::gate_up>(733.5),  kernel_of<tile_256x208, E, Product::gate_up>(733.5),
    kernel_of<tile_256x192, E, Product::gate_up>(728.0),  kernel_of<alone_256x176, E, Product::gate_up>(707.5),
    kernel_of<alone_256x128, E, Product::gate_up>(715.5), kernel_of<tile_128x192, E, Product::gate_up>(709.5),
    kernel_of<tile_128x160, E, Product::gate_up>(699.5),  kernel_of<tile_128x144, E, Product::gate_up>(685.5),
    kernel_of<row_128x224, E, Product::gate_up>(675.5),   kernel_of<row_128x208, E, Product::gate_up>(689.5),
    kernel_of<row_128x144, E, Product::gate_up>(668.0),   kernel_of<alone_128x192, E, Product::gate_up>(675.0),
    kernel_of<alone_128x160, E, Product::gate_up>(661.5), kernel_of<alone_128x128, E, Product::gate_up>(651.0),
    kernel_of<alone_128x96, E, Product::gate_up>(594.5),  kernel_of<alone_128x64, E, Product::gate_up>(408.5),
    kernel_of<split_128x128, E, Product::gate_up>(640.0), kernel_of<split_128x64, E, Product::gate_up>(476.5),
    kernel_of<alone_80x128, E, Product::gate_up>(515.5),  kernel_of<tile_96x128, E, Product::gate_up>(630.0),
    kernel_of<four_96x128, E, Product::gate_up>(670.0),   kernel_of<tile_160x128, E, Product::gate_up>(679.0),
    kernel_of<four_160x128, E, Product::gate_up>(703.0),  kernel_of<tile_192x128, E, Product::gate_up>(702.5),
    kernel_of<tile_208x128, E, Product::gate_up>(687.5),  kernel_of<four_208x128, E, Product::gate_up>(710.5),
};

template <class E>
constexpr std::array plain_kernels{
    kernel_of<tile_256x224, E, Product::plain>(733.5),  kernel_of<tile_256x208, E, Product::plain>(733.5),
    kernel_of<tile_256x192, E, Product::plain>(728.0),  kernel_of<tile_256x176, E, Product::plain>(692.5),
    kernel_of<tile_128x256, E, Product::plain>(700.0),  kernel_of<tile_128x224, E, Product::plain>(690.0),
    kernel_of<alone_128x128, E, Product::plain>(651.0),
};

// gemm's tiles, and two whose warpgroups take turns: the activation is of as many columns as the product, twice
// gate_up's, and there the other warpgroup multiplies meanwhile. Not measured yet: the rates are those of the same
// tiles above.
template <class E>
constexpr std::array gated_by_memory_kernels{
    kernel_of<tile_256x224, E, Product::gated_by_memory>(733.5),
    kernel_of<tile_256x208, E, Product::gated_by_memory>(733.5),
    kernel_of<tile_256x192, E, Product::gated_by_memory>(728.0),
    kernel_of<tile_128x256, E, Product::gated_by_memory>(700.0),
    kernel_of<tile_128x224, E, Product::gated_by_memory>(690.0),
    kernel_of<tile_128x192, E, Product::gated_by_memory>(709.5),
    kernel_of<tile_128x160, E, Product::gated_by_memory>(699.5),
    kernel_of<alone_128x128, E, Product::gated_by_memory>(651.0),
};

}  // namespace gatefold::cuda::sm90
