#pragma once

#include "cuda/sm90/family.cuh"

// gate_up whose tokens have a factor each: 1/rms of a normalised input commutes with the product, and multiplies its
// sums in fp32, before the activation, where an input that was rounded would err by as much as the output does.
namespace gatefold::cuda::sm90 {

template <Config config, class Element>
struct RowScaleEpilogue : GateUpEpilogue<config, Element> {
  using Base = GateUpEpilogue<config, Element>;

  struct Arguments : Base::Arguments {
    const float* row_scale = nullptr;  // [tokens]
    int tokens = 0;
  };

  template <class Encode>
  static Status fill(Arguments& arguments, const Problem& problem, const Operands& operands, Encode encode) {
    arguments.row_scale = operands.row_scale;
    arguments.tokens = static_cast<int>(operands.tokens);
    return Base::fill(arguments, problem, operands, encode);
  }

  // Nothing that has factors has biases.
  template <class Accumulator>
  static __device__ void add_biases(const Arguments& /*arguments*/, const Tile& /*tile*/, int /*thread*/,
                                    Accumulator& /*tCrC*/) {}

  template <class Accumulator>
  static __device__ void store(const CUtensorMap& out, const Arguments& arguments, const Tile& tile, int tile_slabs,
                               typename Base::Storage& storage, typename Base::Inputs& /*inputs*/, int thread,
                               const Accumulator& tCrC) {
    using namespace cute;
    // The kernel before may have written the factors. It has ended long since, as its x came through the ring; this
    // thread has not seen that yet.
    ptx::wait_for_previous_grid();
    float scale[Base::slabs][2];  // of rows r and r + 8
#pragma unroll
    for (int slab = 0; slab < Base::slabs; ++slab) {
      const int row = Base::row_of(tile, thread / 128, slab) + thread % 128 / 32 * 16 + thread % 32 / 4;
      scale[slab][0] = row < arguments.tokens ? arguments.row_scale[row] : 0.0F;
      scale[slab][1] = row + 8 < arguments.tokens ? arguments.row_scale[row + 8] : 0.0F;
    }
    constexpr int up = Base::up;
    arguments.combine.dispatch([&](auto act) {
      Base::store_packed(
          out, tile, tile_slabs, storage, thread, tCrC, [&](const Accumulator& acc, int slab, int group, int row) {
            const float by = scale[slab][row];
            const Pair h =
                act(acc(make_coord(0, row, group), slab, 0) * by, acc(make_coord(0, row, group + up), slab, 0) * by,
                    acc(make_coord(1, row, group), slab, 0) * by, acc(make_coord(1, row, group + up), slab, 0) * by);
            return pack<Element>(h.low, h.high);
          });
    });
  }
};

// Its weights are settled (Problem::row_scale).
template <const Config& tile, class E>
struct RowScaleShape : Shape<tile, E, Product::gate_up> {
  using Loads = ProducerOfSettledWeights<RowScaleShape::config, E>;
  using Epilogue = RowScaleEpilogue<RowScaleShape::config, E>;
};

// For Swap-FFN, which has hundreds of rows for each sequence. 512 rows by 8192 weight rows are 128 tiles of 128x256:
// one round on an H200. The rates are of an earlier fit of the same tiles.
template <class E>
constexpr std::array row_scale_kernels{
    kernel_of_shape<RowScaleShape<tile_256x192, E>>(728.0),
    kernel_of_shape<RowScaleShape<tile_128x256, E>>(700.0),
    kernel_of_shape<RowScaleShape<single_256x128, E>>(715.5),
};

}  // namespace gatefold::cuda::sm90
