#pragma once

#include <type_traits>

#include "cuda/sm90/alternating_epilogue.cuh"
#include "cuda/sm90/epilogue.cuh"
#include "cuda/sm90/feeder.cuh"
#include "cuda/sm90/gate_tile_epilogue.cuh"
#include "cuda/sm90/mainloop.cuh"
#include "cuda/sm90/parts_epilogue.cuh"
#include "cuda/sm90/producer.cuh"
#include "cuda/sm90/reduction.cuh"
#include "cuda/sm90/scheduler.cuh"
#include "cuda/sm90/swap_ab_epilogue.cuh"

// What a kernel is made of. Its template argument is a type, a shape, that names the policies; the kernel composes them
// and decides nothing itself:
//
//     config       the printable sizes, by which the host chooses                  config.hpp
//     Element      of the operands and of the output
//     Loads        who requests the operands, and when                            producer.cuh, feeder.cuh
//     Mainloop     the products of a tile                                          mainloop.cuh
//     Reduction    the sums that several blocks have of a tile, put together       reduction.cuh
//     Epilogue     what becomes of a tile's sums                                   epilogue.cuh
//     Scheduler    which tile next                                                 scheduler.cuh
namespace gatefold::cuda::sm90 {

// The policies that a config's enums stand for, for a shape to name.
template <Feed, Config, class Element>
struct LoadsBy;
template <Config config, class Element>
struct LoadsBy<Feed::producers, config, Element> {
  using Type = Producer<config, Element>;
};
template <Config config, class Element>
struct LoadsBy<Feed::consumers, config, Element> {
  using Type = Feeder<config, Element>;
};

template <Product, bool swap_ab, Config, class Element>
struct EpilogueOf;
template <Config config, class Element>
struct EpilogueOf<Product::plain, false, config, Element> {
  using Type = PlainEpilogue<config, Element>;
};
template <Config config, class Element>
struct EpilogueOf<Product::gate_up, false, config, Element> {
  using Type = GateUpEpilogue<config, Element>;
};
template <Config config, class Element>
struct EpilogueOf<Product::gate_up, true, config, Element> {
  using Type =
      std::conditional_t<config.alternating, AlternatingEpilogue<config, Element>, SwapAbEpilogue<config, Element>>;
};
template <Config config, class Element>
struct EpilogueOf<Product::plain, true, config, Element> {
  using Type = PlainSwapAbEpilogue<config, Element>;
};
template <Config config, class Element>
struct EpilogueOf<Product::parts, false, config, Element> {
  using Type = PartsEpilogue<config>;
};
template <Config config, class Element>
struct EpilogueOf<Product::parts, true, config, Element> {
  using Type = SwapAbPartsEpilogue<config>;
};
template <Config config, class Element>
struct EpilogueOf<Product::gated_parts, true, config, Element> {
  using Type = SwapAbPartsEpilogue<config>;
};
template <Config config, class Element>
struct EpilogueOf<Product::gated_by_memory, false, config, Element> {
  using Type = GateTileEpilogue<config, Element>;
};

template <int split_k, Config>
struct ReductionOf;
template <Config config>
struct ReductionOf<1, config> {
  using Type = NoReduction;
};
template <Config config>
struct ReductionOf<2, config> {
  using Type = PairReduction<config>;
};

constexpr Config with_product(Config tile, Product product) {
  tile.product = product;
  return tile;
}

// (nvcc 13.0 cannot name a __global__ template whose argument is a Config itself.)
template <const Config& tile, class E, Product product>
struct Shape {
  static constexpr Config config = with_product(tile, product);
  using Element = E;
  using Loads = typename LoadsBy<config.feed, config, E>::Type;
  using Mainloop = sm90::Mainloop<config, E>;
  using Reduction = typename ReductionOf<config.split_k, config>::Type;
  using Epilogue = typename EpilogueOf<product, config.swap_ab, config, E>::Type;
  using Scheduler = TileScheduler<config>;
};

}  // namespace gatefold::cuda::sm90
