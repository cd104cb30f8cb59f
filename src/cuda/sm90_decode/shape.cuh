#pragma once

#include "cuda/sm90_decode/epilogue.cuh"
#include "cuda/sm90_decode/mainloop.cuh"
#include "cuda/sm90_decode/producer.cuh"
#include "cuda/sm90_decode/reduction.cuh"
#include "cuda/sm90_decode/scheduler.cuh"

// What a kernel is made of. Its template argument is a type, a shape, that names the policies; the kernel composes them
// and decides nothing itself:
//
//     config       the printable sizes, by which the host chooses                  config.hpp
//     Element      of the operands and of the output
//     Loads        who requests the operands, and when                            producer.cuh
//     Mainloop     the products of a tile                                         mainloop.cuh
//     Reduction    the sums that several blocks have of a tile, put together       reduction.cuh
//     Epilogue     what becomes of a tile's sums                                   epilogue.cuh
//     Scheduler    which tile next                                                 scheduler.cuh
namespace gatefold::cuda::sm90_decode {

// The policy that a config's enum stands for, for a shape to name.
template <Product, Config, class Element>
struct EpilogueOf;
template <Config config, class Element>
struct EpilogueOf<Product::gemm, config, Element> {
  using Type = PlainEpilogue<config, Element>;
};
template <Config config, class Element>
struct EpilogueOf<Product::gate_up, config, Element> {
  using Type = GateUpEpilogue<config, Element>;
};

template <class E, Config c>
struct Shape {
  static constexpr Config config = c;
  using Element = E;
  using Loads = Producer<config, E>;
  using Mainloop = sm90_decode::Mainloop<config, E>;
  using Reduction = ClusterReduction<config>;
  using Epilogue = typename EpilogueOf<config.product, config, E>::Type;
  using Scheduler = TileScheduler<config>;
};

}  // namespace gatefold::cuda::sm90_decode
