#pragma once

#include "cuda/sm90/pipeline.cuh"
#include "cuda/sm90/scheduler.cuh"

namespace gatefold::cuda::sm90 {

// x as the copy engine sees it: in boxes of Geometry::x_box_rows tokens, and the last tokens in a box of x_tail_rows.
struct TokenMaps {
  CUtensorMap body;
  CUtensorMap tail;
};

// One strip of the weight tile as the copy engine sees it, for either kind of box (geometry.hpp).
struct StripMaps {
  CUtensorMap body;
  CUtensorMap edge;  // where no tile has edges, of Geometry::strip_tail_rows
};

// What all loads of a kernel are given.
struct LoadArguments {
  TokenMaps x;           // [T, D], boxes of tokens x 64
  StripMaps strips[2];   // gate's rows and up's; of a single weight its own, twice
  bool weights_settled;  // Operands::weights_settled
};

// What a thread requests: one of the three loads of every k-step, so that many boxes of one hold up none of the others.
// The weight tile comes in two strips of rows: gate's and up's, or of a single weight the first tile_n / 2 and the
// others.
enum class Load : std::uint8_t { first_strip, second_strip, tokens };
inline constexpr int loads_per_step = 3;

// Row `row` of gate's half or up's, or of a single weight, lies in repetition row / block of the layout's pattern, at
// row % block.
struct StripRow {
  std::int32_t row;
  std::int32_t repetition;
};

// What of a tile a thread brings, in each k-step.
struct TileBoxes {
  std::int32_t first_token;
  std::int32_t first_row, end_row;  // of the tile's tokens
  std::int32_t bytes;               // that arrive in a slot, whoever brings them
  StripRow strip_row;               // where the tile's strip begins, which the thread brings
  std::int32_t rows_there;          // of the strip, from there to the tile's end or the last column
  std::int32_t first_step;          // of the k-steps, in parts
};

// The load of a producer warp. Worked out anew each time, for those that have no register to keep it in.
template <Config config>
__device__ int producer_load() {
  return thread_again() / 32 - 4 * config.warpgroups;
}

// Requests the boxes of tokens or of one strip of the weights. Each strip has descriptors of its own: any distance and
// order of the two is a pair of them.
template <Config config, class Element>
class Loader {
 public:
  using Slots = sm90::Slots<config, Element>;

  __device__ Loader(Load part, const LoadArguments& arguments, const Geometry& geometry,
                    const ClusterPlace<config>& place)
      : load_(part), arguments_(arguments), geometry_(geometry), place_(place) {}

  // The same for another load.
  __device__ Loader of(Load part) const { return {part, arguments_, geometry_, place_}; }

  // By one thread of a block.
  static __device__ void prefetch_descriptors(const LoadArguments& arguments, const Geometry& geometry) {
    prefetch_descriptor(&arguments.x.body);
    if (geometry.x_tail_rows > 0) prefetch_descriptor(&arguments.x.tail);
    prefetch_descriptor(&arguments.strips[0].body);
    prefetch_descriptor(&arguments.strips[1].body);
  }

  // Where two blocks share the weights, block 0 brings the first strip for both and block 1 the second.
  __device__ bool brings_something() const {
    return config.cluster_m == 1 || brings_tokens() || place_.m == static_cast<std::uint32_t>(strip());
  }

  // Every block of the cluster brings some of the tokens, for all that share them. What lies past the last token
  // or column is left out, whosever it is: such rows keep what was there, and their products are clipped when they are
  // stored.
  __device__ TileBoxes boxes_of(const Tile& tile) const {
    const int boxes = tile.subtile ? 1 : config.subtiles();  // of each block
    const int first = static_cast<int>(place_.n) * boxes;
    const int brought = min(boxes * config.token_bringers(), boxes_with_tokens(tile));  // by all of them
    const int row = tile.template column<config>() + strip() * strip_stride;
    return {.first_token = tile.first_row,
            .first_row = first * geometry_.x_box_rows,
            .end_row = min(first + boxes, brought) * geometry_.x_box_rows,
            .bytes = (rows_in(brought, tile) + weight_rows(tile)) * bytes_of_a_row,
            .strip_row = strip_row(row),
            .rows_there = has_strip(tile, strip()) ? rows_from(row) : 0,
            .first_step = tile.part * geometry_.part_offset};
  }

  __device__ bool brings_tokens() const { return load_ == Load::tokens; }

  // Those of a single row of tiles are read once: let them be the first to leave L2, so that the tokens stay there.
  __device__ bool weights_pass_once() const { return geometry_.m_tiles == 1; }

  // This thread's load of a k-step.
  __device__ void bring(const TileBoxes& tile, int step, int slot, Slots& slots, std::uint64_t* full) const {
    if (brings_tokens()) {
      bring_tokens(tile, step, slot, slots, full);
    } else {
      bring_strip(tile, step, slot, slots, full);
    }
  }

  // All three loads' bytes are announced here, to this block's own barrier.
  __device__ void bring_tokens(const TileBoxes& tile, int step, int slot, Slots& slots, std::uint64_t* full) const {
    const int k = column_of(tile, step);
    Element* a = slots.a + slot * Slots::a_elements;
    barrier_expect_bytes(full, tile.bytes);
    for (int row = tile.first_row; row < tile.end_row; row += geometry_.x_box_rows) {
      Element* to = a + row * config.tile_k();
      const int token = tile.first_token + row;
      const CUtensorMap* map =
          geometry_.tokens - token < geometry_.x_box_rows ? &arguments_.x.tail : &arguments_.x.body;
      if constexpr (config.cluster_n == 1) {
        load_tile_2d(map, full, to, k, token);
      } else {
        load_tile_2d_multicast(map, full, to, k, token, place_.token_sharers());
      }
      if constexpr (config.short_steps) break;  // a block brings one box at most
    }
  }

  // policy: of the weights in L2, or nothing.
  template <class... Policy>
  __device__ void bring_strip(const TileBoxes& tile, int step, int slot, Slots& slots, std::uint64_t* full,
                              Policy... policy) const {
    const int k = column_of(tile, step);
    Element* b = slots.b + slot * Slots::b_elements + strip() * config.strip_rows() * config.tile_k();
    for_each_box(tile, [&](const CUtensorMap& map, int row_in_strip, int row, int repetition) {
      Element* to = b + row_in_strip * config.tile_k();
      if constexpr (config.alternating && config.cluster_m == 1) {
        load_tile_4d(&map, full, to, k, 0, 0, eight_of(row, repetition), policy...);
      } else if constexpr (config.alternating) {
        load_tile_4d_multicast(&map, full, to, k, 0, 0, eight_of(row, repetition), place_.weight_sharers());
      } else if constexpr (config.cluster_m == 1) {
        load_tile_3d(&map, full, to, k, row, repetition, policy...);
      } else {
        load_tile_3d_multicast(&map, full, to, k, row, repetition, place_.weight_sharers(), policy...);
      }
    });
  }

  // Before begin(), of the load's first tile: its weights' first k-steps begin their way to L2. What an earlier kernel
  // still writes to them reaches L2 as well, so this may run before that kernel has ended.
  __device__ void prefetch_weights(const TileBoxes& tile) const {
    if (brings_tokens() || arguments_.weights_settled) return;
    // Within the loop ptxas 13.0 would leave the row of a box unset in kernels of this product, so that all blocks
    // prefetched the same rows (check_wgmma_code.py).
    if (config.product == Product::gated_parts && tile.rows_there <= 0) return;
    for (int step = 0; step < geometry_.prefetched_steps; ++step) {
      const auto prefetch = [&](const CUtensorMap& map, int /*row_in_strip*/, int row, int repetition) {
        if constexpr (config.alternating) {
          prefetch_tile_4d(&map, column_of(tile, step), 0, 0, eight_of(row, repetition));
        } else {
          prefetch_tile_3d(&map, column_of(tile, step), row, repetition);
        }
      };
      if (config.product == Product::gated_parts && geometry_.strip_boxes.edge_rows == 0) {
        const StripMaps& maps = arguments_.strips[strip()];
        const StripRow& at = tile.strip_row;
        prefetch(tile.rows_there == strip_columns ? maps.body : maps.edge, 0, at.row, at.repetition);
      } else {
        for_each_box(tile, prefetch);
      }
    }
  }

  // By each thread that requests operands, before the first that it requests: the kernel before may still write them,
  // but for weights that are settled, which come into the ring at once. Who brings the tokens then lets the next kernel
  // begin: everything before this one has ended (Executor::holds_back_the_next).
  __device__ void begin() const {
    if (brings_tokens() || !arguments_.weights_settled) wait_for_previous_grid();
    if (brings_tokens()) ptx::launch_next_grid();
  }

 private:
  static constexpr int strip_columns = config.strip_columns();
  static constexpr int rows_of_a_column = config.strip_rows() / strip_columns;
  // From the first strip's columns to the second's.
  static constexpr int strip_stride = of_two_weights(config.product) && !config.alternating ? 0 : strip_columns;
  // Whether a strip may come in several boxes (geometry.hpp).
  static constexpr bool may_have_edges = of_two_weights(config.product) && !config.alternating;
  static constexpr int bytes_of_a_row = config.tile_k() * static_cast<int>(sizeof(Element));  // in a k-step

  __device__ int strip() const { return config.few_registers() ? producer_load<config>() : static_cast<int>(load_); }

  // Where a k-step of this block's begins. Those past column D, of the last block or part, are zeros.
  __device__ int column_of(const TileBoxes& tile, int step) const {
    if constexpr (in_parts(config.product)) {
      return (tile.first_step + step * geometry_.part_stride) * config.tile_k();
    }
    const int first = config.split_k > 1 ? static_cast<int>(place_.k) * geometry_.k_steps : 0;
    return (first + step) * config.tile_k();
  }

  __device__ StripRow strip_row(int row) const {
    const int repetition = row / geometry_.block;
    return {row - repetition * geometry_.block, repetition};
  }

  // Of alternating rows the first eight of gate's half, and of up's: blocks are of eight rows or the whole half.
  static __device__ int eight_of(int row, int repetition) { return row / 8 + repetition; }

  __device__ int boxes_with_tokens(const Tile& tile) const {
    return (max(tile.tokens, 0) + geometry_.x_box_rows - 1) / geometry_.x_box_rows;
  }

  // Of the first `boxes` of a tile's tokens, of which the last may be the tail.
  __device__ int rows_in(int boxes, const Tile& tile) const {
    const int rows = boxes * geometry_.x_box_rows;
    return rows > tile.tokens && boxes > 0 ? rows - geometry_.x_box_rows + geometry_.x_tail_rows : rows;
  }

  static __device__ bool has_strip(const Tile& tile, int strip) {
    return !config.may_narrow() || strip == 0 || !tile.narrow;
  }

  // Of both strips.
  __device__ int weight_rows(const Tile& tile) const {
    const int row = tile.template column<config>();
    const int of_second = has_strip(tile, 1) ? rows_from(row + strip_stride) : 0;
    return rows_of_a_column * (rows_from(row) + of_second);
  }

  // Of the strip that begins at `row`, those that there are, of alternating rows gate's.
  __device__ int rows_from(int row) const { return min(max(geometry_.columns - row, 0), strip_columns); }

  // The boxes of the tile's rows of the thread's strip. Without divisions: it has a microsecond for all of a k-step.
  template <class Box>
  __device__ void for_each_box(const TileBoxes& tile, Box box) const {
    const StripMaps& maps = arguments_.strips[strip()];
    const StripBoxes& boxes = geometry_.strip_boxes;
    StripRow at = tile.strip_row;
    if (config.few_registers() || (config.short_steps && !may_have_edges) || boxes.edge_rows == 0) {
      if (tile.rows_there > 0) box(tile.rows_there == strip_columns ? maps.body : maps.edge, 0, at.row, at.repetition);
      return;
    }
    int body_blocks = boxes.body_blocks;  // still to be brought
    for (int row_in_strip = 0; row_in_strip < tile.rows_there;) {
      if (body_blocks > 0 && at.row == 0 && row_in_strip + boxes.body_rows <= tile.rows_there) {
        box(maps.body, row_in_strip, 0, at.repetition);
        row_in_strip += boxes.body_rows;
        at.repetition += body_blocks;
        body_blocks = 0;
      } else {
        box(maps.edge, row_in_strip, at.row, at.repetition);
        row_in_strip += boxes.edge_rows;
        at.row += boxes.edge_rows;
        if (at.row >= geometry_.block) at = {0, at.repetition + 1};
      }
    }
  }

  Load load_;
  const LoadArguments& arguments_;
  const Geometry& geometry_;
  const ClusterPlace<config>& place_;
};

}  // namespace gatefold::cuda::sm90
