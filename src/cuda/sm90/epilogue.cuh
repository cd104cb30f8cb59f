#pragma once

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/combine.cuh"
#include "cuda/sm90/bias.cuh"
#include "cuda/sm90/staging.cuh"

namespace gatefold::cuda::sm90 {

// An epilogue is what a kernel does with the sums of a tile. It has these members:
//
//     Arguments    its part of the kernel's arguments, beside the output's descriptor
//     Storage      the staging buffer, aligned as swizzling wants it
//     Inputs       barriers of what a tile reads beside the product's operands
//     store_rows, chunk, swizzle    the boxes of the output's descriptor; one that does not store by the copy engine
//                                   has store_rows = 0 and no others
//     init         by one thread of a block: barriers
//     has_inputs   whether there are any, and prefetch to be called:
//     prefetch     requests what a tile reads, by the thread that copies when the first k-step has been multiplied
//     add_biases   by the warpgroup, to its accumulators
//     store        by the warpgroup, with its accumulators
//     fill         on the host: its arguments of a run. encode(map, base, ld) describes a matrix [T, F] in boxes like
//                  the output's.
//
// One that reads nothing takes Inputs, has_inputs and init from here.
struct NoInputs {
  struct Inputs {};
  static constexpr bool has_inputs = false;

  template <class Arguments>
  static __device__ void init(const Arguments& /*arguments*/, Inputs& /*inputs*/) {}
};

// What gemm's epilogues are given.
struct PlainArguments {
  struct Arguments {
    TileBias bias;
  };

  template <class Encode>
  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands, Encode /*encode*/) {
    arguments.bias = TileBias(problem, operands, Half::up);
    return {};
  }
};

// gemm: the sums, rounded.
template <Config config, class Element>
struct PlainEpilogue : Staging<config, Element>, NoInputs, PlainArguments {
  using Buffer = Staging<config, Element>;

  template <class Accumulator>
  static __device__ void add_biases(const Arguments& arguments, const Tile& tile, int thread, Accumulator& tCrC) {
    add_to_columns<config, Stored<Element>>(arguments.bias, tile, 0, thread, tCrC);
  }

  template <class Accumulator>
  static __device__ void store(const CUtensorMap& out, const Arguments& /*arguments*/, const Tile& tile, int tile_slabs,
                               typename Buffer::Storage& storage, Inputs& /*inputs*/, int thread,
                               const Accumulator& tCrC) {
    using namespace cute;
    Buffer::store_packed(
        out, tile, tile_slabs, storage, thread, tCrC, [](const Accumulator& acc, int slab, int group, int row) {
          return pack<Element>(acc(make_coord(0, row, group), slab, 0), acc(make_coord(1, row, group), slab, 0));
        });
  }
};

// What gate_up's epilogues are given.
struct GateUpArguments {
  struct Arguments {
    Combine combine;
    TileBias gate_bias, up_bias;
  };

  template <class Encode>
  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands, Encode /*encode*/) {
    arguments.combine = Combine(problem.activation, problem.batch_invariant);
    arguments.gate_bias = TileBias(problem, operands, Half::gate);
    arguments.up_bias = TileBias(problem, operands, Half::up);
    return {};
  }
};

// gate_up: the first half of a tile's columns is gate's, the second up's: activation, product, one rounding.
template <Config config, class Element>
struct GateUpEpilogue : Staging<config, Element>, NoInputs, GateUpArguments {
  using Buffer = Staging<config, Element>;
  static constexpr int up = config.tile_n / 16;  // up's first group of 8 columns

  template <class Accumulator>
  static __device__ void add_biases(const Arguments& arguments, const Tile& tile, int thread, Accumulator& tCrC) {
    add_to_columns<config, Stored<Element>>(arguments.gate_bias, tile, 0, thread, tCrC);
    add_to_columns<config, Stored<Element>>(arguments.up_bias, tile, up, thread, tCrC);
  }

  template <class Accumulator>
  static __device__ void store(const CUtensorMap& out, const Arguments& arguments, const Tile& tile, int tile_slabs,
                               typename Buffer::Storage& storage, Inputs& /*inputs*/, int thread,
                               const Accumulator& tCrC) {
    using namespace cute;
    arguments.combine.template dispatch<Reciprocals::either>([&](auto act) {
      Buffer::store_packed(
          out, tile, tile_slabs, storage, thread, tCrC, [&](const Accumulator& acc, int slab, int group, int row) {
            const Pair h = act(acc(make_coord(0, row, group), slab, 0), acc(make_coord(0, row, group + up), slab, 0),
                               acc(make_coord(1, row, group), slab, 0), acc(make_coord(1, row, group + up), slab, 0));
            return pack<Element>(h.low, h.high);
          });
    });
  }
};

}  // namespace gatefold::cuda::sm90
