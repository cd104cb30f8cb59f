#pragma once

#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// One half of the weights as the copy engine sees it, for either kind of box (geometry.hpp).
struct HalfMaps {
  CUtensorMap body;
  CUtensorMap edge;
};

// What the producer brings to the ring, by one thread: boxes of x and of the two halves of the weight tile, each half
// through its own descriptor, so that any distance and order of the two is a pair of descriptors.
template <Config config, class Element>
class Loader {
 public:
  using Slots = sm90::Slots<config, Element>;

  __device__ Loader(const CUtensorMap& x, const HalfMaps& first_half, const HalfMaps& second_half,
                    const Geometry& geometry, const ClusterPlace<config>& place)
      : x_(x), first_half_(first_half), second_half_(second_half), geometry_(geometry), place_(place) {}

  // The first k-steps of a tile's weights begin their way to L2. What an earlier kernel still writes to them reaches L2
  // as well, so this may run before that kernel has ended.
  __device__ void prefetch_weights(const Tile& tile) const {
    const WeightRows rows = weight_rows(tile);
    for (int step = 0; step < geometry_.prefetched_steps; ++step) {
      for_each_box(rows, [&](const CUtensorMap& half, int /*row_in_tile*/, int row, int repetition) {
        prefetch_tile_3d(&half, step * Config::tile_k, row, repetition);
      });
    }
  }

  // Fills the ring with the k-steps of one tile. Rows of x past the last token keep what was there: their products are
  // clipped when they are stored.
  __device__ void load(const Tile& tile, Slots& slots, Ring<config>& ring,
                       RingPosition<config.stages>& position) const {
    const int x_boxes = tile.half ? 1 : config.halves();
    const int x_rows = x_boxes * geometry_.x_box_rows * config.cluster_n;
    const int bytes = (x_rows + config.tile_n) * Config::tile_k * static_cast<int>(sizeof(Element));
    const WeightRows rows = weight_rows(tile);

    for (int step = 0; step < geometry_.k_steps; ++step) {
      const int slot = position.slot;
      barrier_wait(&ring.empty[slot], position.phase ^ 1);
      std::uint64_t* full = &ring.full[slot];
      barrier_expect_bytes(full, bytes);
      const int k = step * Config::tile_k;
      load_x(tile, x_boxes, slots.a + slot * Slots::a_elements, full, k);
      Element* b = slots.b + slot * Slots::b_elements;
      for_each_box(rows, [&](const CUtensorMap& half, int row_in_tile, int row, int repetition) {
        Element* to = b + row_in_tile * Config::tile_k;
        if constexpr (config.cluster_m == 1) {
          load_tile_3d(&half, full, to, k, row, repetition);
        } else {
          load_tile_3d_multicast(&half, full, to, k, row, repetition, place_.weight_sharers());
        }
      });
      position.advance();
    }
  }

 private:
  // Row `row` of a half lies in repetition row / block of the layout's pattern, at row % block.
  struct HalfRow {
    int row;
    int repetition;
  };
  struct WeightRows {
    HalfRow first;
    HalfRow second;
  };

  __device__ HalfRow half_row(int row) const {
    const int repetition = row / geometry_.block;
    return {row - repetition * geometry_.block, repetition};
  }
  // Of a plain product the halves are the two parts of one tile of rows.
  __device__ WeightRows weight_rows(const Tile& tile) const {
    const int row = tile.n * config.columns();
    return {half_row(row), half_row(row + (config.gated ? 0 : config.tile_n / 2))};
  }

  // Every block of the cluster brings its share of the tokens, for all that share them.
  __device__ void load_x(const Tile& tile, int boxes, Element* a, std::uint64_t* full, int k) const {
    const int first = static_cast<int>(place_.n) * boxes * geometry_.x_box_rows;
    for (int box = 0; box < boxes; ++box) {
      const int row = first + box * geometry_.x_box_rows;
      Element* to = a + row * Config::tile_k;
      if constexpr (config.cluster_n == 1) {
        load_tile_2d(&x_, full, to, k, tile.first_row + row);
      } else {
        load_tile_2d_multicast(&x_, full, to, k, tile.first_row + row, place_.token_sharers());
      }
    }
  }

  // The boxes that this block brings, of both halves, or where two blocks share the weights, of one: block 0 the first
  // and block 1 the second.
  template <class Box>
  __device__ void for_each_box(const WeightRows& rows, Box box) const {
    if (config.cluster_m == 1 || place_.m == 0) for_each_box_of(first_half_, rows.first, 0, box);
    if (config.cluster_m == 1 || place_.m == 1) for_each_box_of(second_half_, rows.second, config.tile_n / 2, box);
  }
  template <class Box>
  __device__ void for_each_box_of(const HalfMaps& half, HalfRow at, int row_in_tile, Box box) const {
    const HalfBoxes& boxes = geometry_.half_boxes;
    if (boxes.edge_rows == 0) return box(half.body, row_in_tile, at.row, at.repetition);
    const int end = row_in_tile + config.tile_n / 2;
    int body_blocks = boxes.body_blocks;  // still to be brought
    while (row_in_tile < end) {           // without divisions: the thread has a microsecond for all boxes of a k-step
      if (body_blocks > 0 && at.row == 0) {
        box(half.body, row_in_tile, 0, at.repetition);
        row_in_tile += boxes.body_rows;
        at.repetition += body_blocks;
        body_blocks = 0;
      } else {
        box(half.edge, row_in_tile, at.row, at.repetition);
        row_in_tile += boxes.edge_rows;
        at.row += boxes.edge_rows;
        if (at.row >= geometry_.block) at = {0, at.repetition + 1};
      }
    }
  }

  const CUtensorMap& x_;
  const HalfMaps& first_half_;
  const HalfMaps& second_half_;
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
};

}  // namespace gatefold::cuda::sm90
