#pragma once

#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// One half of the weights as the copy engine sees it, for either kind of box (geometry.hpp).
struct HalfMaps {
  CUtensorMap body;
  CUtensorMap edge;
};

// What a thread asks for: one of the three parts of every k-step, so that many boxes of one hold up none of the others.
enum class Part : std::uint8_t { first_half, second_half, tokens };
inline constexpr int parts = 3;

// Row `row` of a half lies in repetition row / block of the layout's pattern, at row % block.
struct HalfRow {
  std::int32_t row;
  std::int32_t repetition;
};

// What of a tile a thread brings, in each k-step.
struct TileBoxes {
  std::int32_t first_token;
  std::int32_t first_box, end_box;  // of the tile's boxes of tokens
  std::int32_t bytes;               // that arrive in a slot, whoever brings them
  HalfRow half_row;                 // where the tile begins in the thread's half of the weights
};

// Asks for the boxes of tokens or of one half of the weights. Each half has descriptors of its own: any distance and
// order of the two is a pair of them.
template <Config config, class Element>
class Loader {
 public:
  using Slots = sm90::Slots<config, Element>;

  // halves: the first, the second.
  __device__ Loader(Part part, const CUtensorMap& x, const HalfMaps (&halves)[2], const Geometry& geometry,
                    const ClusterPlace<config>& place)
      : part_(part), x_(x), halves_(halves), geometry_(geometry), place_(place) {}

  // The same for another part.
  __device__ Loader of(Part part) const { return {part, x_, halves_, geometry_, place_}; }

  // Where two blocks share the weights, block 0 brings the first half for both and block 1 the second.
  __device__ bool brings_something() const {
    return config.cluster_m == 1 || part_ == Part::tokens || place_.m == static_cast<std::uint32_t>(half());
  }

  // Every block of the cluster brings its share of the tokens, for all that share them. Boxes past the last token are
  // left out, whosever they are: such rows keep what was there, and their products are clipped when they are stored.
  __device__ TileBoxes boxes_of(const Tile& tile) const {
    const int box_rows = geometry_.x_box_rows;
    const int boxes = tile.half ? 1 : config.halves();  // of each block
    const int with_tokens =
        min(boxes * config.cluster_n, (geometry_.tokens - tile.first_row + box_rows - 1) / box_rows);
    const int first = static_cast<int>(place_.n) * boxes;
    const int rows = max(with_tokens, 0) * box_rows + config.tile_n;
    // Of a plain product the halves are those of one tile of rows.
    const int row = tile.n * config.columns() + (config.gated ? 0 : half() * half_rows);
    return {.first_token = tile.first_row,
            .first_box = first,
            .end_box = min(first + boxes, with_tokens),
            .bytes = rows * Config::tile_k * static_cast<int>(sizeof(Element)),
            .half_row = half_row(row)};
  }

  // This thread's part of the k-step that begins at column k.
  __device__ void bring(const TileBoxes& tile, int k, int slot, Slots& slots, std::uint64_t* full) const {
    if (part_ == Part::tokens) {
      bring_tokens(tile, k, slots.a + slot * Slots::a_elements, full);
    } else {
      bring_half(tile, k, slots.b + slot * Slots::b_elements + half() * half_rows * Config::tile_k, full);
    }
  }

  // The first k-steps of a tile's weights begin their way to L2. What an earlier kernel still writes to them reaches L2
  // as well, so this may run before that kernel has ended.
  __device__ void prefetch_weights(const TileBoxes& tile) const {
    if (part_ == Part::tokens) return;
    for (int step = 0; step < geometry_.prefetched_steps; ++step) {
      for_each_box(tile.half_row, [&](const CUtensorMap& map, int /*row_in_half*/, int row, int repetition) {
        prefetch_tile_3d(&map, step * Config::tile_k, row, repetition);
      });
    }
  }

 private:
  static constexpr int half_rows = config.tile_n / 2;

  __device__ int half() const { return static_cast<int>(part_); }

  // All three parts' bytes are announced here, to this block's own barrier.
  __device__ void bring_tokens(const TileBoxes& tile, int k, Element* a, std::uint64_t* full) const {
    barrier_expect_bytes(full, tile.bytes);
    for (int box = tile.first_box; box < tile.end_box; ++box) {
      const int row = box * geometry_.x_box_rows;
      Element* to = a + row * Config::tile_k;
      if constexpr (config.cluster_n == 1) {
        load_tile_2d(&x_, full, to, k, tile.first_token + row);
      } else {
        load_tile_2d_multicast(&x_, full, to, k, tile.first_token + row, place_.token_sharers());
      }
    }
  }

  __device__ void bring_half(const TileBoxes& tile, int k, Element* b, std::uint64_t* full) const {
    for_each_box(tile.half_row, [&](const CUtensorMap& map, int row_in_half, int row, int repetition) {
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

  // The boxes of the tile's rows of the thread's half. Without divisions: it has a microsecond for all of a k-step.
  template <class Box>
  __device__ void for_each_box(HalfRow at, Box box) const {
    const HalfMaps& maps = halves_[half()];
    const HalfBoxes& boxes = geometry_.half_boxes;
    if (boxes.edge_rows == 0) return box(maps.body, 0, at.row, at.repetition);
    int body_blocks = boxes.body_blocks;  // still to be brought
    for (int row_in_half = 0; row_in_half < half_rows;) {
      if (body_blocks > 0 && at.row == 0) {
        box(maps.body, row_in_half, 0, at.repetition);
        row_in_half += boxes.body_rows;
        at.repetition += body_blocks;
        body_blocks = 0;
      } else {
        box(maps.edge, row_in_half, at.row, at.repetition);
        row_in_half += boxes.edge_rows;
        at.row += boxes.edge_rows;
        if (at.row >= geometry_.block) at = {0, at.repetition + 1};
      }
    }
  }

  Part part_;
  const CUtensorMap& x_;
  const HalfMaps (&halves_)[2];
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
};

}  // namespace gatefold::cuda::sm90
