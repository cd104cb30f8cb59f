#pragma once

#include <array>

#include "cuda/sm90/launch.cuh"
#include "cuda/sm90/shape.cuh"

// The shapes that are compiled, each for a regime that a benchmark shows (docs/kernels/sm90.md). tile_: of clusters
// of two that share tokens or weights; row_: tokens, where tile_ of the size shares weights; half_: weights, where a
// tile of all the tokens would share tokens; four_: of four; three_: as many warpgroups together, where others are in
// ping-pong; strips_: whose last round may be of half tiles; both_: such tiles by two warpgroups together; single_:
// without clusters; few_: the same for 64 tokens at most.
namespace gatefold::cuda::sm90 {

// Many tokens: the fewest bytes per product, since blocks that share tokens bring 128 + 224 rows each, where blocks
// that share weights would 256 + 112. The accumulators of 208 and 224 columns need the producers' registers too. 14336
// and 28672, the columns of Llama 8B and 70B, are 128 and 256 tiles of 224, so that 132 multiprocessors waste least;
// 405B's 53248 are 512 of 208. Narrow ones make rounds of models of few columns, for which it takes too long that a
// cluster meets.
inline constexpr Config tile_256x224{
    .tile_m = 256, .tile_n = 224, .stages = 3, .cluster_n = 2, .feed = Feed::consumers};
inline constexpr Config tile_256x208{
    .tile_m = 256, .tile_n = 208, .stages = 3, .cluster_n = 2, .feed = Feed::consumers};
inline constexpr Config tile_256x192{.tile_m = 256, .tile_n = 192, .stages = 3, .cluster_n = 2};
inline constexpr Config tile_256x176{.tile_m = 256, .tile_n = 176, .stages = 3, .cluster_n = 2};
inline constexpr Config single_256x128{.tile_m = 256, .tile_n = 128, .stages = 4};
// From 129 tokens, where tiles of 256 would leave much empty or make too few: blocks share weights.
inline constexpr Config tile_128x256{.tile_m = 128, .tile_n = 256, .stages = 4, .cluster_m = 2};
inline constexpr Config tile_128x224{.tile_m = 128, .tile_n = 224, .stages = 4, .cluster_m = 2};
inline constexpr Config tile_128x192{
    .tile_m = 128, .tile_n = 192, .stages = 4, .cluster_m = 2, .schedule = Schedule::pingpong};
inline constexpr Config tile_128x128{
    .tile_m = 128, .tile_n = 128, .stages = 5, .cluster_m = 2, .schedule = Schedule::pingpong};
inline constexpr Config tile_128x176{
    .tile_m = 128, .tile_n = 176, .stages = 4, .cluster_m = 2, .schedule = Schedule::pingpong};
inline constexpr Config tile_128x160{
    .tile_m = 128, .tile_n = 160, .stages = 5, .cluster_m = 2, .schedule = Schedule::pingpong};
// gemm of 6144 columns with 256 tokens, or 2560 to 3072 with 512: a single tile for most blocks, so by both
// warpgroups.
constexpr Config together_of(int tile_n, int stages) {
  return {.tile_m = 128, .tile_n = tile_n, .stages = stages, .cluster_m = 2, .short_steps = true};
}
inline constexpr Config tile_128x96 = together_of(96, 7);
inline constexpr Config tile_128x80 = together_of(80, 8);
// Up to 128 tokens there is no second token tile to share weights with: blocks share tokens, or nothing. All weights
// come from memory once, and take least time where every multiprocessor brings as many: each width suits other models.
inline constexpr Config row_128x224{.tile_m = 128, .tile_n = 224, .stages = 4, .cluster_n = 2};
inline constexpr Config row_128x208{.tile_m = 128, .tile_n = 208, .stages = 4, .cluster_n = 2};
inline constexpr Config row_128x144{.tile_m = 128, .tile_n = 144, .stages = 6, .cluster_n = 2};
// 56 columns: 14336, 13824 and 21504 are 256, 247 and 384 tiles, 1.94, 1.87 and 2.91 rounds of 132.
inline constexpr Config tile_128x112{
    .tile_m = 128, .tile_n = 112, .stages = 6, .cluster_n = 2, .schedule = Schedule::pingpong};
inline constexpr Config single_128x192{.tile_m = 128, .tile_n = 192, .stages = 4, .schedule = Schedule::pingpong};
inline constexpr Config single_128x160{.tile_m = 128, .tile_n = 160, .stages = 5, .schedule = Schedule::pingpong};
inline constexpr Config single_128x128{.tile_m = 128, .tile_n = 128, .stages = 5, .schedule = Schedule::pingpong};
inline constexpr Config single_128x96{.tile_m = 128, .tile_n = 96, .stages = 7, .schedule = Schedule::pingpong};
inline constexpr Config single_128x64{.tile_m = 128, .tile_n = 64, .stages = 8, .schedule = Schedule::pingpong};
// Up to 64 tokens: half of a tile of 128 would be empty slots. Without clusters a block fills its ring as soon as its
// multiprocessor is free; narrow tiles make two rounds or more of a model's columns, and hide all ends but the last.
constexpr Config few_of(int tile_n, int stages) {
  return {.tile_m = 64, .tile_n = tile_n, .stages = stages, .schedule = Schedule::pingpong};
}
inline constexpr Config few_64x64 = few_of(64, 12);
inline constexpr Config few_64x80 = few_of(80, 12);
inline constexpr Config few_64x96 = few_of(96, 10);
inline constexpr Config few_64x112 = few_of(112, 9);
inline constexpr Config few_64x128 = few_of(128, 8);
inline constexpr Config few_64x144 = few_of(144, 8);
inline constexpr Config few_64x176 = few_of(176, 6);
inline constexpr Config few_64x208 = few_of(208, 5);
// Too few tiles for all multiprocessors, of long sums (DeepSeek-V3's experts).
inline constexpr Config split_128x128{.tile_m = 128, .tile_n = 128, .stages = 5, .split_k = 2};
inline constexpr Config split_128x64{.tile_m = 128, .tile_n = 64, .stages = 8, .split_k = 2};
// Tokens that leave much of tiles of 128 and 256 empty: up to 80 or 96, 129 to 160, 192 and 208, and multiples. A
// warpgroup takes 64 rows of gate and 64 of up, 64 columns in ping-pong. Four blocks that share tokens request least
// of L2, but a few multiprocessors belong to no cluster of four: that pays where memory is the bound. A seventh slot is
// worth 1 to 10 % there; tile_96x128 gains nothing by one.
inline constexpr Config single_80x128{
    .tile_m = 80, .tile_n = 128, .stages = 7, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config four_80x128{
    .tile_m = 80, .tile_n = 128, .stages = 7, .cluster_n = 4, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config tile_96x128{
    .tile_m = 96, .tile_n = 128, .stages = 6, .cluster_n = 2, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config four_96x128{
    .tile_m = 96, .tile_n = 128, .stages = 7, .cluster_n = 4, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config tile_160x128{
    .tile_m = 160, .tile_n = 128, .stages = 5, .cluster_n = 2, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config four_160x128{
    .tile_m = 160, .tile_n = 128, .stages = 5, .cluster_n = 4, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config tile_192x128{
    .tile_m = 192, .tile_n = 128, .stages = 4, .cluster_n = 2, .schedule = Schedule::pingpong, .swap_ab = true};
// A down-projection's few columns: twice the tiles, of half the tokens, that share the weights.
inline constexpr Config half_80x128{
    .tile_m = 80, .tile_n = 128, .stages = 6, .cluster_m = 2, .schedule = Schedule::pingpong, .swap_ab = true};
inline constexpr Config half_96x128{
    .tile_m = 96, .tile_n = 128, .stages = 6, .cluster_m = 2, .schedule = Schedule::pingpong, .swap_ab = true};
// Four rows of 112 tokens, 448 in all, where rows of 128 would leave a slab empty: a single tile for most blocks, so by
// both warpgroups.
inline constexpr Config low_112x128{.tile_m = 112, .tile_n = 128, .stages = 6, .cluster_m = 2, .swap_ab = true};
// 96 columns of tiles whose rows alternate: for so many tokens in one row of tiles, 11008 and 12288 columns are 115 and
// 128 of them, one round; two rows that share the weights are three rounds of 17408 to 18944. Three warpgroups together
// have the registers for 192 tokens where no others are producers.
constexpr Config alternating(Config tile) {
  tile.swap_ab = tile.alternating = true;
  return tile;
}
constexpr Config half_of_192(int tile_m, int stages) {
  return alternating(
      {.tile_m = tile_m, .tile_n = 192, .stages = stages, .cluster_m = 2, .schedule = Schedule::pingpong});
}
inline constexpr Config tile_72x192 =
    alternating({.tile_m = 72, .tile_n = 192, .stages = 6, .cluster_n = 2, .schedule = Schedule::pingpong});
inline constexpr Config half_80x192 = half_of_192(80, 6);
inline constexpr Config half_96x192 = half_of_192(96, 5);
inline constexpr Config half_104x192 = half_of_192(104, 5);
inline constexpr Config half_112x192 = half_of_192(112, 5);
inline constexpr Config three_192x192 =
    alternating({.tile_m = 192, .tile_n = 192, .stages = 4, .warpgroups = 3, .cluster_n = 2, .feed = Feed::consumers});
// 64 columns in two strips, of which a last round's tiles have one: 28672 are 3.5 rounds of 132, where tiles of 64
// alone take four.
constexpr Config strips_of_128(int tile_m, int stages) {
  return alternating(
      {.tile_m = tile_m, .tile_n = 128, .stages = stages, .cluster_n = 2, .schedule = Schedule::pingpong});
}
inline constexpr Config strips_144x128 = strips_of_128(144, 6);
inline constexpr Config strips_160x128 = strips_of_128(160, 6);
inline constexpr Config strips_176x128 = strips_of_128(176, 5);
inline constexpr Config strips_192x128 = strips_of_128(192, 5);
inline constexpr Config strips_200x128 = strips_of_128(200, 5);
inline constexpr Config strips_208x128 = strips_of_128(208, 5);
// Two rows of 104 tokens that share the weights, 200 and 208 in all: a model of few columns makes twice as many tiles,
// and its last one's epilogue is half as long.
inline constexpr Config half_104x128 =
    alternating({.tile_m = 104, .tile_n = 128, .stages = 7, .cluster_m = 2, .schedule = Schedule::pingpong});

// In strips by both warpgroups together, for twice the tokens: they bring the weights for both halves of them.
inline constexpr Config both_320x128 =
    alternating({.tile_m = 320, .tile_n = 128, .stages = 3, .cluster_n = 2, .tokens_divided = true});

template <class S>
constexpr Kernel kernel_of_shape(double teraflops) {
  return {S::config, teraflops, launch<S>, resident_clusters<S>};
}

template <const Config& tile, class E, Product product>
constexpr Kernel kernel_of(double teraflops) {
  return kernel_of_shape<Shape<tile, E, product>>(teraflops);
}

}  // namespace gatefold::cuda::sm90
