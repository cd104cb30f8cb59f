#pragma once

#include <cute/tensor.hpp>  // the other CuTe headers need it first

#include <cute/atom/mma_traits_sm80.hpp>

#include "cuda/sm80/config.hpp"

// Gate and up of an output element meet in one thread's registers. The order of a tile's weight rows sees to that: row
// n of the weights is column n of the product.
//
//   weight row n        0   1   2   3  ...   7   8   9  ...  15  16  17  ...
//   even_odd            g0  u0  g1  u1       u3  g4  u4      u7  g8  u8
//   groups_of_eight     g0  g1  g2  g3       g7  u0  u1      u7  g8  g9
//
// Of a product's 16 x 8 accumulators, lane t holds columns 2(t%4) and 2(t%4) + 1 of rows t/4 and t/4 + 8. So a thread
// finds gate and up of one output element
//
//   even_odd            in its two columns of one product, which yields 16 x 4 outputs,
//   groups_of_eight     in the same place of two neighbouring products, which yield 16 x 8 outputs together.
//
// All of this runs on the host too, where the tests check it.
namespace gatefold::cuda::sm80 {

// The outputs of one product `Mma` under even_odd, for CuTe to divide a tile of them among the threads.
template <class Mma>
struct EvenOddOutputs;

}  // namespace gatefold::cuda::sm80

namespace cute {

template <class Mma>
struct MMA_Traits<gatefold::cuda::sm80::EvenOddOutputs<Mma>> : MMA_Traits<Mma> {
  using Shape_MNK = Shape<_16, _4, decltype(get<2>(typename MMA_Traits<Mma>::Shape_MNK{}))>;
  // Lane t's value v is element (t/4 + 8 v, t%4) of 16 x 4, whose rows count first: number (t%4) 16 + t/4 + 8 v.
  using CLayout = Layout<Shape<Shape<_4, _8>, _2>, Stride<Stride<_16, _1>, _8>>;
};

}  // namespace cute

namespace gatefold::cuda::sm80 {

// A weight row of a tile: which half it is of, and which line of that half's, counted from the tile's first.
struct TileRow {
  Half half;
  int line;
};

template <Gating G>
CUTE_HOST_DEVICE constexpr TileRow tile_row(int n) {
  if constexpr (G == Gating::even_odd) {
    return {n % 2 == 0 ? Half::gate : Half::up, n / 2};
  } else if constexpr (G == Gating::groups_of_eight) {
    return {n / 8 % 2 == 0 ? Half::gate : Half::up, n / 16 * 8 + n % 8};  // sixteen rows are eight lines of both halves
  } else {
    return {Half::up, n};
  }
}

// One half of a thread's accumulators tCrC ((2,2),MMA_M,MMA_N), whose first mode is (column, row) within a product. The
// result has the shape of the thread's outputs: (2,MMA_M,MMA_N) under even_odd, else ((2,2),MMA_M,MMA_N/2).
template <Gating G, class Accumulators>
CUTE_HOST_DEVICE constexpr auto half_of(Accumulators&& tCrC, Half half) {
  using namespace cute;
  const int which = half == Half::gate ? 0 : 1;
  if constexpr (G == Gating::even_odd) {
    return tCrC(make_coord(which, _), _, _);
  } else {
    static_assert(G == Gating::groups_of_eight);
    const auto by_twos = Shape<Underscore, Underscore, _2>{};
    auto tCrPairs = logical_divide(tCrC, by_twos);  // ((2,2),MMA_M,(2,MMA_N/2))
    return tCrPairs(_, _, make_coord(which, _));
  }
}

}  // namespace gatefold::cuda::sm80
