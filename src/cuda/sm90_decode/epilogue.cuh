#pragma once

#include "core/problem.hpp"
#include "cuda/common/bias.cuh"
#include "cuda/common/combine.cuh"
#include "cuda/common/element.cuh"
#include "cuda/sm90_decode/scheduler.cuh"

namespace gatefold::cuda::sm90_decode {

// An epilogue is what a kernel does with the sums of a tile. It has these members:
//
//     Arguments    its part of the kernel's arguments
//     fill         on the host: its arguments of a run
//     store        by the consumers, with the units of a tile that the block has to add up (reduction.cuh)

// The way of a unit's sums to memory, which every epilogue takes: element by element, whatever the output's rows.
template <Config config, class Element>
class Output {
 public:
  struct Arguments {
    Element* out = nullptr;  // [T, F]
    std::int64_t ld_out = 0;
  };

  static void fill(Arguments& arguments, const Problem& problem, const Operands& operands) {
    arguments.out = reinterpret_cast<Element*>(operands.out);
    arguments.ld_out = problem.ld_out;
  }

 protected:
  // function(token, row, i) for both rows of each slab of which a thread has sums: sums[slab][i] is of `token` and
  // sums[slab][i + 1] of the next. A slab of fewer than 64 rows ends before the sums do.
  template <class Function>
  static __device__ void for_each_row(const Geometry& geometry, const Tile<config>& tile, int unit, Function function) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = unit / config.groups() * 16 + lane / 4;
    const int token = tile.first_token() + unit % config.groups() * 8 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + 8 * half >= geometry.slab_rows) continue;
      function(token, row + 8 * half, 2 * half);
    }
  }

  // Of two neighbouring tokens.
  static __device__ void store_pair(const Arguments& arguments, const Geometry& geometry, int token, int column,
                                    float first, float second) {
    Element* const out = arguments.out + token * arguments.ld_out + column;
    if (token < geometry.tokens) out[0] = from_float<Element>(first);
    if (token + 1 < geometry.tokens) out[arguments.ld_out] = from_float<Element>(second);
  }
};

// gemm: the sums, rounded.
template <Config config, class Element>
struct PlainEpilogue : Output<config, Element> {
  using Base = Output<config, Element>;

  struct Arguments : Base::Arguments {
    Bias bias;                 // [F]
    std::int32_t columns = 0;  // F
  };

  static void fill(Arguments& arguments, const Problem& problem, const Operands& operands) {
    Base::fill(arguments, problem, operands);
    arguments.bias = bias_of(problem, operands, Half::up);
    arguments.columns = static_cast<std::int32_t>(problem.intermediate_size);
  }

  template <class Units>
  static __device__ void store(const Arguments& arguments, const Geometry& geometry, const Tile<config>& tile,
                               const Units& units) {
    units.for_each([&](int unit, const auto& sums) {
      Base::for_each_row(geometry, tile, unit, [&](int token, int row, int i) {
        const int first_column = tile.first_row() + row;
#pragma unroll
        for (int slab = 0; slab < Config::slabs; ++slab) {
          const int column = first_column + slab * geometry.slab_rows;
          if (column >= arguments.columns) continue;
          const auto sum = [&](int t) { return arguments.bias.template add_to<Element>(sums[slab][i + t], column); };
          Base::store_pair(arguments, geometry, token, column, sum(0), sum(1));
        }
      });
    });
  }
};

// gate_up: a tile's first slab is gate's, its second up's: activation, product, one rounding.
template <Config config, class Element>
struct GateUpEpilogue : Output<config, Element> {
  using Base = Output<config, Element>;

  struct Arguments : Base::Arguments {
    Bias gate_bias, up_bias;   // [F]
    std::int32_t columns = 0;  // F
    ExactCombine combine;
  };

  static void fill(Arguments& arguments, const Problem& problem, const Operands& operands) {
    Base::fill(arguments, problem, operands);
    arguments.gate_bias = bias_of(problem, operands, Half::gate);
    arguments.up_bias = bias_of(problem, operands, Half::up);
    arguments.columns = static_cast<std::int32_t>(problem.intermediate_size);
    arguments.combine = ExactCombine(problem.activation);
  }

  template <class Units>
  static __device__ void store(const Arguments& arguments, const Geometry& geometry, const Tile<config>& tile,
                               const Units& units) {
    arguments.combine.dispatch([&](auto act) {
      units.for_each([&](int unit, const auto& sums) {
        Base::for_each_row(geometry, tile, unit, [&](int token, int row, int i) {
          const int column = tile.first_row() + row;
          if (column >= arguments.columns) return;
          const auto gate = [&](int t) { return arguments.gate_bias.template add_to<Element>(sums[0][i + t], column); };
          const auto up = [&](int t) { return arguments.up_bias.template add_to<Element>(sums[1][i + t], column); };
          const Pair h = act(gate(0), up(0), gate(1), up(1));
          Base::store_pair(arguments, geometry, token, column, h.low, h.high);
        });
      });
    });
  }
};

}  // namespace gatefold::cuda::sm90_decode
