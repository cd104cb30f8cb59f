#pragma once

#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// One half of the weights as the copy engine sees it, for either kind of box (geometry.hpp).
struct HalfMaps {
  CUtensorMap body;
  CUtensorMap edge;
};

// Row `row` of a half lies in repetition row / block of the layout's pattern, at row % block.
struct HalfRow {
  std::int32_t row;
  std::int32_t repetition;
};

// What of a tile this block brings, in each k-step.
struct TileBoxes {
  std::int32_t first_token;
  std::int32_t first_box, end_box;  // of the tile's boxes of tokens
  std::int32_t bytes;               // that arrive in a slot, whoever brings them
  HalfRow first_half, second_half;  // where the tile begins in each half of the weights
};

// Asks for the boxes of tokens and weights. Each half of the weights has descriptors of its own: any distance and order
// of the two is a pair of them.
template <Config config, class Element>
class Loader {
 public:
  using Slots = sm90::Slots<config, Element>;

  __device__ Loader(const CUtensorMap& x, const HalfMaps& first_half, const HalfMaps& second_half,
                    const Geometry& geometry, const ClusterPlace<config>& place)
      : x_(x), first_half_(first_half), second_half_(second_half), geometry_(geometry), place_(place) {}

  // Every block of the cluster brings its share of the tokens, for all that share them. Boxes past the last token are
  // left out, whosever they are: such rows keep what was there, and their products are clipped when they are stored.
  __device__ TileBoxes boxes_of(const Tile& tile) const {
    const int box_rows = geometry_.x_box_rows;
    const int boxes = tile.half ? 1 : config.halves();  // of each block
    const int with_tokens =
        min(boxes * config.cluster_n, (geometry_.tokens - tile.first_row + box_rows - 1) / box_rows);
    const int first = static_cast<int>(place_.n) * boxes;
    const int rows = max(with_tokens, 0) * box_rows + config.tile_n;
    // Of a plain product the halves are the two parts of one tile of rows.
    const int row = tile.n * config.columns();
    return {.first_token = tile.first_row,
            .first_box = first,
            .end_box = min(first + boxes, with_tokens),
            .bytes = rows * Config::tile_k * static_cast<int>(sizeof(Element)),
            .first_half = half_row(row),
            .second_half = half_row(config.gated ? row : row + config.tile_n / 2)};
  }

  // The tokens of the k-step that begins at column k. All three parts' bytes are announced here, to this block's own
  // barrier.
  __device__ void bring_tokens(const TileBoxes& tile, int k, int slot, Slots& slots, std::uint64_t* full) const {
    barrier_expect_bytes(full, tile.bytes);
    for (int box = tile.first_box; box < tile.end_box; ++box) {
      const int row = box * geometry_.x_box_rows;
      Element* to = slots.a + slot * Slots::a_elements + row * Config::tile_k;
      if constexpr (config.cluster_n == 1) {
        load_tile_2d(&x_, full, to, k, tile.first_token + row);
      } else {
        load_tile_2d_multicast(&x_, full, to, k, tile.first_token + row, place_.token_sharers());
      }
    }
  }

  __device__ void bring_first_half(const TileBoxes& tile, int k, int slot, Slots& slots, std::uint64_t* full) const {
    bring_half(first_half_, tile.first_half, slots.b + slot * Slots::b_elements, k, full);
  }
  __device__ void bring_second_half(const TileBoxes& tile, int k, int slot, Slots& slots, std::uint64_t* full) const {
    Element* b = slots.b + slot * Slots::b_elements + config.tile_n / 2 * Config::tile_k;
    bring_half(second_half_, tile.second_half, b, k, full);
  }

  // The first k-steps of a tile's weights begin their way to L2. What an earlier kernel still writes to them reaches L2
  // as well, so this may run before that kernel has ended.
  __device__ void prefetch_first_half(const TileBoxes& tile) const { prefetch(first_half_, tile.first_half); }
  __device__ void prefetch_second_half(const TileBoxes& tile) const { prefetch(second_half_, tile.second_half); }

 private:
  __device__ void prefetch(const HalfMaps& half, const HalfRow& first) const {
    for (int step = 0; step < geometry_.prefetched_steps; ++step) {
      for_each_box(half, first, [&](const CUtensorMap& map, int /*row_in_half*/, int row, int repetition) {
        prefetch_tile_3d(&map, step * Config::tile_k, row, repetition);
      });
    }
  }

  __device__ void bring_half(const HalfMaps& half, const HalfRow& first, Element* b, int k, std::uint64_t* full) const {
    for_each_box(half, first, [&](const CUtensorMap& map, int row_in_half, int row, int repetition) {
      Element* to = b + row_in_half * Config::tile_k;
      if constexpr (config.cluster_m == 1) {
        load_tile_3d(&map, full, to, k, row, repetition);
      } else {
        load_tile_3d_multicast(&map, full, to, k, row, repetition, place_.weight_sharers());
      }
    });
  }

  __device__ HalfRow half_row(int row) const {
    const int repetition = row / geometry_.block;
    return {row - repetition * geometry_.block, repetition};
  }

  // The boxes of one half of a tile. Without divisions: the thread has a microsecond for all of a k-step.
  template <class Box>
  __device__ void for_each_box(const HalfMaps& half, HalfRow at, Box box) const {
    const HalfBoxes& boxes = geometry_.half_boxes;
    if (boxes.edge_rows == 0) return box(half.body, 0, at.row, at.repetition);
    int body_blocks = boxes.body_blocks;  // still to be brought
    for (int row_in_half = 0; row_in_half < config.tile_n / 2;) {
      if (body_blocks > 0 && at.row == 0) {
        box(half.body, row_in_half, 0, at.repetition);
        row_in_half += boxes.body_rows;
        at.repetition += body_blocks;
        body_blocks = 0;
      } else {
        box(half.edge, row_in_half, at.row, at.repetition);
        row_in_half += boxes.edge_rows;
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
