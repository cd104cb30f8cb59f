#pragma once

#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// One half of the weights as the copy engine sees it, for either kind of box (geometry.hpp).
struct HalfMaps {
  CUtensorMap body;
  CUtensorMap edge;
};

// What a producer thread brings to the ring: one of the three parts of every k-step, so that many boxes of one part
// hold up none of the others. Each half of the weights has descriptors of its own: any distance and order of the two is
// a pair of them.
enum class Part : std::uint8_t { tokens, first_half, second_half };
inline constexpr int parts = 3;

template <Config config, class Element>
class Loader {
 public:
  using Slots = sm90::Slots<config, Element>;

  __device__ Loader(Part part, const CUtensorMap& x, const HalfMaps& first_half, const HalfMaps& second_half,
                    const Geometry& geometry, const ClusterPlace<config>& place)
      : part_(part),
        x_(x),
        half_(part == Part::first_half ? first_half : second_half),
        geometry_(geometry),
        place_(place) {}

  // Where two blocks share the weights, block 0 brings the first half for both and block 1 the second.
  __device__ bool brings_something() const {
    if (config.cluster_m == 1 || part_ == Part::tokens) return true;
    return (place_.m == 0) == (part_ == Part::first_half);
  }

  // The first k-steps of a tile's weights begin their way to L2. What an earlier kernel still writes to them reaches L2
  // as well, so this may run before that kernel has ended.
  __device__ void prefetch_weights(const Tile& tile) const {
    if (part_ == Part::tokens) return;
    const HalfRow first = first_row(tile);
    for (int step = 0; step < geometry_.prefetched_steps; ++step) {
      for_each_box(first, [&](const CUtensorMap& half, int /*row_in_half*/, int row, int repetition) {
        prefetch_tile_3d(&half, step * Config::tile_k, row, repetition);
      });
    }
  }

  // Fills the ring with this part of the k-steps of one tile.
  __device__ void load(const Tile& tile, Slots& slots, Ring<config>& ring,
                       RingPosition<config.stages>& position) const {
    if (part_ == Part::tokens) {
      load_tokens(tile, slots, ring, position);
    } else {
      load_half(tile, slots, ring, position);
    }
  }

 private:
  // step(slot, its barrier, first column) as the slots come free.
  template <class Step>
  __device__ void for_each_step(Ring<config>& ring, RingPosition<config.stages>& position, Step step) const {
    for (int i = 0; i < geometry_.k_steps; ++i) {
      const int slot = position.slot;
      barrier_wait(&ring.empty[slot], position.phase ^ 1);
      step(slot, &ring.full[slot], i * Config::tile_k);
      position.advance();
    }
  }

  // Every block of the cluster brings its share of the tokens, for all that share them, and announces the bytes of all
  // three parts to its own barrier. Rows past the last token keep what was there: their products are clipped when they
  // are stored.
  __device__ void load_tokens(const Tile& tile, Slots& slots, Ring<config>& ring,
                              RingPosition<config.stages>& position) const {
    const int box_rows = geometry_.x_box_rows;
    const int boxes = tile.half ? 1 : config.halves();  // of each block
    // Those past the last token are left out, whosever they are.
    const int with_tokens =
        min(boxes * config.cluster_n, (geometry_.tokens - tile.first_row + box_rows - 1) / box_rows);
    const int bytes =
        (max(with_tokens, 0) * box_rows + config.tile_n) * Config::tile_k * static_cast<int>(sizeof(Element));
    const int first = static_cast<int>(place_.n) * boxes;
    const int end = min(first + boxes, with_tokens);
    for_each_step(ring, position, [&](int slot, std::uint64_t* full, int k) {
      barrier_expect_bytes(full, bytes);
      for (int box = first; box < end; ++box) {
        const int row = box * box_rows;
        Element* to = slots.a + slot * Slots::a_elements + row * Config::tile_k;
        if constexpr (config.cluster_n == 1) {
          load_tile_2d(&x_, full, to, k, tile.first_row + row);
        } else {
          load_tile_2d_multicast(&x_, full, to, k, tile.first_row + row, place_.token_sharers());
        }
      }
    });
  }

  __device__ void load_half(const Tile& tile, Slots& slots, Ring<config>& ring,
                            RingPosition<config.stages>& position) const {
    const HalfRow first = first_row(tile);
    const int begin = part_ == Part::first_half ? 0 : config.tile_n / 2;  // in the slot's tile
    for_each_step(ring, position, [&](int slot, std::uint64_t* full, int k) {
      Element* b = slots.b + slot * Slots::b_elements + begin * Config::tile_k;
      for_each_box(first, [&](const CUtensorMap& half, int row_in_half, int row, int repetition) {
        Element* to = b + row_in_half * Config::tile_k;
        if constexpr (config.cluster_m == 1) {
          load_tile_3d(&half, full, to, k, row, repetition);
        } else {
          load_tile_3d_multicast(&half, full, to, k, row, repetition, place_.weight_sharers());
        }
      });
    });
  }

  // Row `row` of a half lies in repetition row / block of the layout's pattern, at row % block.
  struct HalfRow {
    int row;
    int repetition;
  };

  // Of a plain product the halves are the two parts of one tile of rows.
  __device__ HalfRow first_row(const Tile& tile) const {
    const bool second_of_plain = !config.gated && part_ == Part::second_half;
    const int row = tile.n * config.columns() + (second_of_plain ? config.tile_n / 2 : 0);
    const int repetition = row / geometry_.block;
    return {row - repetition * geometry_.block, repetition};
  }

  // The boxes of this half of a tile. Without divisions: the thread has a microsecond for all of a k-step.
  template <class Box>
  __device__ void for_each_box(HalfRow at, Box box) const {
    const HalfBoxes& boxes = geometry_.half_boxes;
    if (boxes.edge_rows == 0) return box(half_.body, 0, at.row, at.repetition);
    int body_blocks = boxes.body_blocks;  // still to be brought
    for (int row_in_half = 0; row_in_half < config.tile_n / 2;) {
      if (body_blocks > 0 && at.row == 0) {
        box(half_.body, row_in_half, 0, at.repetition);
        row_in_half += boxes.body_rows;
        at.repetition += body_blocks;
        body_blocks = 0;
      } else {
        box(half_.edge, row_in_half, at.row, at.repetition);
        row_in_half += boxes.edge_rows;
        at.row += boxes.edge_rows;
        if (at.row >= geometry_.block) at = {0, at.repetition + 1};
      }
    }
  }

  Part part_;
  const CUtensorMap& x_;
  const HalfMaps& half_;
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
};

}  // namespace gatefold::cuda::sm90
