#pragma once

#include "cuda/sm90/config.hpp"

// One configuration of each kind that the kernels know, for the tests of how a product is cut.
namespace gatefold::cuda::sm90 {

inline constexpr Product gate_up = Product::gate_up;
inline constexpr Config two_slabs{.tile_m = 256, .tile_n = 176, .stages = 3, .cluster_n = 2, .product = gate_up};
inline constexpr Config one_slab{.tile_m = 128, .tile_n = 224, .stages = 4, .cluster_m = 2, .product = gate_up};
inline constexpr Config pingpong{
    .tile_m = 128, .tile_n = 128, .stages = 5, .product = gate_up, .schedule = Schedule::pingpong};
inline constexpr Config swap_ab{
    .tile_m = 160, .tile_n = 256, .stages = 3, .cluster_n = 2, .product = gate_up, .swap_ab = true};
inline constexpr Config consumer_fed{
    .tile_m = 256, .tile_n = 224, .stages = 3, .cluster_n = 2, .product = gate_up, .feed = Feed::consumers};
inline constexpr Config split_sums{.tile_m = 128, .tile_n = 64, .stages = 8, .product = gate_up, .split_k = 2};
constexpr Config swap_ab_of_four(int tile_m, int stages) {
  Config c{.tile_m = tile_m, .tile_n = 128, .stages = stages, .cluster_n = 4, .product = gate_up, .swap_ab = true};
  c.schedule = Schedule::pingpong;
  return c;
}
inline constexpr Config of_four = swap_ab_of_four(96, 6);
inline constexpr Config two_of_four_bring = swap_ab_of_four(208, 4);
inline constexpr Config alternating{.tile_m = 104,
                                    .tile_n = 192,
                                    .stages = 5,
                                    .cluster_m = 2,
                                    .product = gate_up,
                                    .schedule = Schedule::pingpong,
                                    .swap_ab = true,
                                    .alternating = true};
inline constexpr Config tokens_divided{.tile_m = 320,
                                       .tile_n = 128,
                                       .stages = 3,
                                       .cluster_n = 2,
                                       .product = gate_up,
                                       .swap_ab = true,
                                       .alternating = true,
                                       .tokens_divided = true};
static_assert(tokens_divided.slabs() == 2 && tokens_divided.warpgroup_tokens() == 160 &&
              tokens_divided.accumulators() == 160 && tokens_divided.may_narrow());
inline constexpr Config all_configs[] = {two_slabs,  one_slab, pingpong,          swap_ab,     consumer_fed,
                                         split_sums, of_four,  two_of_four_bring, alternating, tokens_divided};
constexpr Config in_strips(int tile_m, int cluster_m, int cluster_n) {
  Config c = alternating;
  c.tile_m = tile_m;
  c.tile_n = 128;
  c.cluster_m = cluster_m;
  c.cluster_n = cluster_n;
  return c;
}
static_assert(in_strips(208, 1, 2).may_narrow() && !alternating.may_narrow() && !of_four.may_narrow());
// A slab leaves shared memory in halves; of 200 tokens they overlap, so that five slots of the ring fit beside them.
static_assert(in_strips(208, 1, 2).staged_tokens() == 104 && in_strips(208, 1, 2).pieces_of_a_slab() == 2);
static_assert(in_strips(200, 1, 2).staged_tokens() == 104 && in_strips(200, 1, 2).pieces_of_a_slab() == 2);
static_assert(alternating.staged_tokens() == 104 && alternating.pieces_of_a_slab() == 1);
static_assert(in_strips(200, 1, 2).shared_bytes() <= Config::most_shared_bytes);

}  // namespace gatefold::cuda::sm90
