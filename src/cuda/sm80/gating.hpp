#pragma once

#include <cute/tensor.hpp>

#include "cuda/sm80/config.hpp"

// The two ways to bring gate and up together in a thread's registers, behind one interface. Runs on the host too, where
// the tests check it.
//
// In an m16n8 accumulator, thread t of the warp holds columns 2(t%4) and 2(t%4)+1 of rows t/4 and t/4+8.
//   even_odd         weight rows alternate one by one, so those two columns are gate and up of one output column: an
//                    n8 fragment yields four output columns, and the output atom is 16x4.
//   groups_of_eight  weight rows alternate by eight, so gate and up of an output column are the same value of
//                    neighbouring fragments: two n8 fragments yield eight columns, and the output atom is 16x8 again.
namespace gatefold::cuda::sm80 {

template <Gating G>
struct GatedAtom;  // stands for "the products of one MMA (or two), gated": only its C layout is ever partitioned with

}  // namespace gatefold::cuda::sm80

namespace cute {

template <>
struct MMA_Traits<gatefold::cuda::sm80::GatedAtom<gatefold::cuda::sm80::Gating::even_odd>> {
  using ValTypeD = float;
  using ValTypeA = bfloat16_t;
  using ValTypeB = bfloat16_t;
  using ValTypeC = float;
  using Shape_MNK = Shape<_16, _4, _16>;
  using ThrID = Layout<_32>;
  using ALayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2, _2>>, Stride<Stride<_32, _1>, Stride<_16, _8, _128>>>;
  using BLayout = Layout<Shape<Shape<_4, _2, _4>, Shape<_2, _2>>, Stride<Stride<_8, _0, _1>, Stride<_4, _32>>>;
  using CLayout = Layout<Shape<Shape<_4, _8>, _2>, Stride<Stride<_16, _1>, _8>>;  // (T32,V2) -> (M16,N4)
};

template <>
struct MMA_Traits<gatefold::cuda::sm80::GatedAtom<gatefold::cuda::sm80::Gating::groups_of_eight>> {
  using ValTypeD = float;
  using ValTypeA = bfloat16_t;
  using ValTypeB = bfloat16_t;
  using ValTypeC = float;
  using Shape_MNK = Shape<_16, _8, _16>;
  using ThrID = Layout<_32>;
  using ALayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2, _2>>, Stride<Stride<_32, _1>, Stride<_16, _8, _128>>>;
  using BLayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2>>, Stride<Stride<_16, _1>, Stride<_8, _64>>>;
  using CLayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2>>, Stride<Stride<_32, _1>, Stride<_16, _8>>>;
};

}  // namespace cute

namespace gatefold::cuda::sm80 {

// Weight row n of a tile in shared memory is row `line` of a half, both counted from the tile's first.
struct TileRow {
  Half half;
  int line;
};

template <Gating G>
CUTE_HOST_DEVICE constexpr TileRow tile_row(int n) {
  if constexpr (G == Gating::even_odd) {
    return {n % 2 == 0 ? Half::gate : Half::up, n / 2};
  } else if constexpr (G == Gating::groups_of_eight) {
    return {n / 8 % 2 == 0 ? Half::gate : Half::up, n / 16 * 8 + n % 8};
  } else {
    return {Half::up, n};
  }
}

// One half of the accumulators tCrC ((2,2),MMA_M,MMA_N), in the shape of the output fragment that the gated atom
// partitions: (2,MMA_M,MMA_N) or ((2,2),MMA_M,MMA_N/2).
template <Gating G, class Accumulators>
CUTE_HOST_DEVICE constexpr auto half_of(Accumulators&& tCrC, Half half) {
  using namespace cute;
  const int h = half == Half::gate ? 0 : 1;
  if constexpr (G == Gating::even_odd) {
    return tCrC(make_coord(h, _), _, _);
  } else {
    static_assert(G == Gating::groups_of_eight);
    auto tCrPairs = logical_divide(tCrC, Shape<Underscore, Underscore, _2>{});  // ((2,2),MMA_M,(2,MMA_N/2))
    return tCrPairs(_, _, make_coord(h, _));
  }
}

}  // namespace gatefold::cuda::sm80
