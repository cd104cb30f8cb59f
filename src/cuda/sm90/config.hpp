#pragma once

#include <cstdint>
#include <string>

#include "core/status.hpp"

namespace gatefold::cuda::sm90 {

// What is made of a tile of x . w^T. plain: the output (gemm). gate_up: the weights are gate's and up's, whose products
// are combined. gated_by_memory: the weights are up's, and a tile of gate values comes from memory (gemm_gated). parts:
// the sums of some of the k-steps, in fp32, which another kernel adds up (gemm; parts.cuh). gated_parts: the same of
// gate's and up's rows, which that kernel then combines (gate_up; gated_parts.cuh).
enum class Product : std::uint8_t { plain, gate_up, gated_by_memory, parts, gated_parts };

// Whether half of a tile's weight rows are gate's and half up's.
constexpr bool of_two_weights(Product product) {
  return product == Product::gate_up || product == Product::gated_parts;
}
constexpr bool in_parts(Product product) { return product == Product::parts || product == Product::gated_parts; }

// How the warpgroups divide the tiles. cooperative: each has some of the tokens of every tile. pingpong: each has
// every second tile to itself, so that one multiplies while the other is in its epilogue.
enum class Schedule : std::uint8_t { cooperative, pingpong };

// Who requests the operands of the copy engine. producers: warps of a warpgroup of their own. consumers: warps that
// multiply (feeder.cuh), and the registers are all consumers'.
enum class Feed : std::uint8_t { producers, consumers };

// One compiled shape of the kernel. The product's tile is tile_m tokens x tile_n weight rows; of two weights one half
// of those rows is gate, the other up, so that it yields tile_n / 2 columns of h.
struct Config {
  int tile_m = 0;      // tokens: a multiple of 64 x warpgroups_per_tile(), or with swap_ab of 16
  int tile_n = 0;      // weight rows: the N of the wgmma, or with swap_ab its M
  int stages = 0;      // slots of the ring between the copy engine and the tensor cores
  int warpgroups = 2;  // that multiply; the producers are one more
  int cluster_m = 1;   // thread blocks that share one weight tile, each loading some of it for all
  int cluster_n = 1;   // thread blocks that share one token tile
  Product product = Product::plain;
  Schedule schedule = Schedule::cooperative;
  bool swap_ab = false;  // weight rows are the rows of the wgmma and tokens its columns, any multiple of 16
  // With swap_ab, of gate_up: eight rows of gate and eight of up by turns, so that 64 have both halves of 32 columns,
  // and tile_n is any multiple of 64. Tokens are any multiple of 8.
  bool alternating = false;
  // Of alternating tiles, and with swap_ab of parts: warpgroups together have each some of the tokens and all weight
  // rows of a tile. Without, each has some of the weight rows and all tokens.
  bool tokens_divided = false;
  Feed feed = Feed::producers;
  int split_k = 1;  // thread blocks that divide the columns of x and of the weights among them (reduction.cuh)
  // A block multiplies one part of a tile's columns of x after the other, each to sums of its own, and adds these up.
  bool adds_parts = false;
  // Producers keep what all k-steps of a tile have in common: a warp that works it out anew takes some 376 cycles for a
  // step, which narrow tiles multiply in 320. For tiles of one subtile.
  bool short_steps = false;
  int operand_bytes = 2;  // of an element of x and of the weights
  int output_bytes = 2;   // of an element of the output

  constexpr bool pingpong() const { return schedule == Schedule::pingpong; }
  constexpr bool has_producers() const { return feed == Feed::producers; }
  constexpr int warpgroups_per_tile() const { return pingpong() ? 1 : warpgroups; }
  // Among which a tile's rows of the wgmma are divided, or its columns.
  constexpr int row_warpgroups() const { return tokens_divided ? 1 : warpgroups_per_tile(); }
  constexpr int column_warpgroups() const { return tokens_divided ? warpgroups_per_tile() : 1; }
  constexpr int warpgroup_tokens() const { return tile_m / column_warpgroups(); }  // with swap_ab
  constexpr int threads() const { return 128 * (warpgroups + (has_producers() ? 1 : 0)); }
  constexpr int tiles_per_cluster() const { return cluster_m * cluster_n; }
  constexpr int cluster() const { return tiles_per_cluster() * split_k; }
  constexpr int columns() const { return of_two_weights(product) ? tile_n / 2 : tile_n; }  // of the output
  // Of kernels for one row of tiles: more rows would each bring all weights.
  constexpr bool for_one_row() const { return tile_m == 64 || (in_parts(product) && cluster() == 1); }

  // The weights of a tile come in two strips of rows, for so many columns of the output each: gate's and up's, or, of a
  // single weight and of alternating rows, the first half of the tile's columns and the second.
  constexpr int strip_rows() const { return tile_n / 2; }
  constexpr int strip_columns() const { return alternating ? tile_n / 4 : tile_n / 2; }

  // Whether a tile may be of its first strip alone, a slab of 64 rows: of the last round, where half of the others'
  // columns are left for each (geometry.hpp).
  constexpr bool may_narrow() const { return alternating && slabs() == 2; }

  // Of 64 rows of the wgmma, that a warpgroup takes of a tile: tokens, or with swap_ab gate's and up's.
  constexpr int slabs() const { return (swap_ab ? tile_n : tile_m) / (64 * row_warpgroups()); }
  // Rows of x come in boxes of 64 tokens per warpgroup. A tile of two such subtiles can be split in two, so that more
  // multiprocessors share a round that would not be full (geometry.hpp).
  constexpr int subtiles() const { return swap_ab ? 1 : slabs(); }
  constexpr int box_rows() const { return tile_m / (subtiles() * token_bringers()); }
  // Of the blocks that share tokens those that bring a box of each subtile for all: every one, unless 8 rows, the
  // swizzle's atom, do not divide its box.
  constexpr int token_bringers() const {
    return tile_m / subtiles() % (8 * cluster_n) == 0 ? cluster_n : cluster_n / 2;
  }

  // The tokens are dealt out among the rows of tiles in pieces of so many: of the wgmma's 64 rows, whole boxes.
  constexpr int token_quantum() const { return swap_ab ? tile_m : box_rows() > 64 ? box_rows() : 64; }

  // Tiles for products that memory bounds, where all tokens may be in one row of them: the weights are then read once.
  constexpr bool weights_may_pass_once() const {
    return cluster_m == 1 && tile_m <= (product == Product::gate_up && swap_ab ? 96 : 128);
  }

  static constexpr int swizzle_bytes = 128;             // of a row
  static constexpr int most_shared_bytes = 227 * 1024;  // of a block
  static constexpr int barrier_bytes = 1024;            // that barriers and all that is small take at most
  constexpr int tile_k() const { return swizzle_bytes / operand_bytes; }
  constexpr int stage_bytes() const { return (tile_m + tile_n) * swizzle_bytes; }

  // The output passes through shared memory this many columns at a time, which bounds the staging buffer of a plain
  // product to that of gate_up.
  constexpr int store_columns() const { return product == Product::gated_by_memory ? gate_columns() : tile_n / 2; }

  // Gate values come in boxes of 64 rows and so many columns, which h then leaves by: 64 or 32, which a swizzle spreads
  // over the banks, or an odd number of pieces of 8. A warpgroup has as many buffers for them as the ring leaves room
  // for: three let it wait for no box while it combines (gate_tile_epilogue.cuh).
  constexpr int gate_columns() const {
    if (tile_n % 64 == 0) return gate_buffers_of(64) < 3 ? 32 : 64;
    int columns = tile_n;
    while (columns > 64 && columns % 16 == 0) columns /= 2;
    return columns;
  }
  constexpr int gate_buffers() const { return gate_buffers_of(gate_columns()); }
  // Slabs that are staged together; without producers the tiles are so large that there is room for one only.
  constexpr int staged_slabs() const { return has_producers() ? slabs() : 1; }
  // Of alternating rows: tokens of a slab's 32 columns. Where the ring leaves room and no other warpgroup multiplies
  // meanwhile, each piece of a tile has a place of its own, so that no store is waited for. Two halves of 200 tokens
  // are 104 each, of which 8 are staged twice; up to 128 there is room for all at once.
  constexpr int staged_tokens() const {
    const int half = warpgroup_tokens() / 2;
    return half % 8 == 0 ? half : warpgroup_tokens() > 128 ? half + 4 : warpgroup_tokens();
  }
  constexpr int pieces_of_a_slab() const { return (warpgroup_tokens() + staged_tokens() - 1) / staged_tokens(); }
  constexpr int staged_pieces() const {
    const int pieces = slabs() * pieces_of_a_slab();
    const int room = most_shared_bytes - barrier_bytes - stages * stage_bytes();
    return tokens_divided && pieces * staged_piece_bytes() <= room ? pieces : 1;
  }
  constexpr int store_bytes() const {
    if (in_parts(product)) return 0;  // straight from registers
    if (alternating) return staged_pieces() * staged_piece_bytes();
    if (product == Product::gated_by_memory) return gate_buffers() * gate_buffer_bytes(gate_columns());
    if (swap_ab) return warpgroups * tile_m * 64 * output_bytes;  // 64 columns of each warpgroup
    return (pingpong() ? warpgroups : 1) * tile_m / slabs() * staged_slabs() * store_columns() * output_bytes;
  }

  // Where the blocks divide the sums, what one warpgroup's accumulators come to, which another block sends.
  constexpr int exchange_bytes() const { return split_k > 1 ? tile_m * tile_n * 4 / warpgroups : 0; }

  // The ring, the staging buffer, what blocks exchange, and the barriers.
  constexpr int shared_bytes() const {
    return stages * stage_bytes() + store_bytes() + exchange_bytes() + barrier_bytes;
  }

  // Of a thread; with adds_parts as many again are the sum of the parts before.
  constexpr int accumulators() const { return tile_m * tile_n / (128 * warpgroups_per_tile()); }

  // setmaxnreg: registers per thread, multiples of 8. The producers issue copies and waits; the rest goes to the
  // accumulators and the epilogue. Together no more than a block is launched with: a warpgroup that requested more
  // would wait for ever.
  constexpr int launch_registers() const { return threads() * (65536 / threads() / 8 * 8); }
  constexpr int producer_registers() const { return few_registers() ? 24 : 40; }
  constexpr int consumer_registers() const { return few_registers() ? 240 : 232; }
  // Accumulators that leave too few registers to all others: producers keep in shared memory where they stand, and take
  // only layouts of which a strip of the tile, gate's or up's, comes in one box.
  constexpr bool few_registers() const { return has_producers() && accumulators() * (adds_parts ? 2 : 1) > 192; }

 private:
  constexpr int staged_piece_bytes() const { return warpgroups * staged_tokens() * 32 * output_bytes; }
  constexpr int gate_buffer_bytes(int columns) const { return warpgroups * 64 * columns * output_bytes; }
  constexpr int gate_buffers_of(int columns) const {
    const int room = (most_shared_bytes - barrier_bytes - stages * stage_bytes()) / gate_buffer_bytes(columns);
    const int boxes = slabs() * tile_n / columns;  // of a warpgroup's tile
    return room < boxes ? room : boxes;
  }
};

// What tells a shape from the others of its family: "256x192 cluster 1x2".
inline std::string name(const Config& c) {
  return concat(c.tile_m, "x", c.tile_n, " cluster ", c.cluster_m, "x", c.cluster_n, c.pingpong() ? " pingpong" : "",
                c.swap_ab ? " swap-AB" : "", c.alternating ? " alternating" : "",
                c.has_producers() ? "" : " consumer-fed", c.split_k > 1 ? concat(" split-K ", c.split_k) : "",
                in_parts(c.product) ? " split-K in parts" : "", c.adds_parts ? " adding parts" : "");
}

}  // namespace gatefold::cuda::sm90
