#pragma once

#include <cstdint>
#include <string>

#include "core/status.hpp"

namespace gatefold::cuda::sm90 {

// What is made of a tile of x . w^T. plain: the output (gemm). gate_up: the weights are gate's and up's, whose products
// are combined. gated_by_memory: the weights are up's, and a tile of gate values comes from memory (gemm_gated).
enum class Product : std::uint8_t { plain, gate_up, gated_by_memory };

// One compiled shape of the kernel. The product's tile is tile_m tokens x tile_n weight rows; of gate_up one half of
// those rows is gate, the other up, so that it yields tile_n / 2 columns of h.
struct Config {
  int tile_m;      // tokens: a multiple of 64 x warpgroups_per_tile(), or where transposed of 16
  int tile_n;      // weight rows: the N of the wgmma, or where transposed its M
  int stages;      // slots of the ring between the copy engine and the tensor cores
  int warpgroups;  // that multiply; the producers are one more
  int cluster_m;   // thread blocks that share one weight tile, each loading a part for all
  int cluster_n;   // thread blocks that share one token tile
  Product product;
  bool pingpong;  // each warpgroup computes a tile of its own, in turns, so that one multiplies while the other stores
  bool transposed = false;  // weight rows are the rows of the wgmma and tokens its columns, any multiple of 16
  bool producers = true;    // or consumers ask for the operands (feeder.cuh), and the registers are all consumers'
  int split_k = 1;          // thread blocks that divide the columns of x and of the weights among them (exchange.cuh)

  constexpr int warpgroups_per_tile() const { return pingpong ? 1 : warpgroups; }
  constexpr int threads() const { return 128 * (warpgroups + (producers ? 1 : 0)); }
  constexpr int tiles_per_cluster() const { return cluster_m * cluster_n; }
  constexpr int cluster() const { return tiles_per_cluster() * split_k; }
  constexpr int columns() const { return product == Product::gate_up ? tile_n / 2 : tile_n; }  // of the output

  // Of 64 rows of the wgmma, that a warpgroup takes of a tile: tokens, or where transposed gate's and up's.
  constexpr int slabs() const { return (transposed ? tile_n : tile_m) / (64 * warpgroups_per_tile()); }
  // Rows of x come in boxes of 64 tokens per warpgroup. A tile of two such halves can be split in two, so that more
  // multiprocessors share a round that would not be full (geometry.hpp).
  constexpr int halves() const { return transposed ? 1 : slabs(); }
  constexpr int box_rows() const { return tile_m / (halves() * token_bringers()); }
  // Of the blocks that share tokens those that bring a box of each half for all: every one, unless 8 rows, the
  // swizzle's atom, do not divide its box.
  constexpr int token_bringers() const { return tile_m / halves() % (8 * cluster_n) == 0 ? cluster_n : cluster_n / 2; }

  static constexpr int tile_k = 64;  // 128 bytes of a 16-bit type: the swizzle's row
  constexpr int stage_bytes() const { return (tile_m + tile_n) * tile_k * 2; }

  // The output passes through shared memory this many columns at a time, which bounds the staging buffer of a plain
  // product to that of gate_up.
  constexpr int store_columns() const { return tile_n / 2; }
  // Slabs that are staged together; without producers the tiles are so large that there is room for one only.
  constexpr int staged_slabs() const { return producers ? slabs() : 1; }
  constexpr int store_bytes() const {
    return (pingpong ? warpgroups : 1) * tile_m / slabs() * staged_slabs() * store_columns() * 2;
  }

  // Where the blocks divide the sums, what one warpgroup's accumulators come to, which another block sends.
  constexpr int exchange_bytes() const { return split_k > 1 ? tile_m * tile_n * 4 / warpgroups : 0; }

  // The ring, the staging buffer, what blocks exchange, and the barriers.
  constexpr int shared_bytes() const { return stages * stage_bytes() + store_bytes() + exchange_bytes() + 1024; }

  constexpr int accumulators() const { return tile_m * tile_n / (128 * warpgroups_per_tile()); }  // of a thread

  // setmaxnreg: registers per thread, multiples of 8. The producers issue copies and waits; the rest goes to the
  // accumulators and the epilogue. Together no more than a block is launched with: a warpgroup that asked for more
  // would wait for ever.
  constexpr int launch_registers() const { return threads() * (65536 / threads() / 8 * 8); }
  constexpr int producer_registers() const { return crowded() ? 24 : 40; }
  constexpr int consumer_registers() const { return crowded() ? 240 : 232; }
  // Accumulators that leave too few registers to all others: producers keep in shared memory where they stand, and take
  // only layouts of which half a tile comes in one box.
  constexpr bool crowded() const { return producers && accumulators() > 192; }
};

// What tells a shape from the others of its family: "256x192 cluster 1x2".
inline std::string name(const Config& c) {
  return concat(c.tile_m, "x", c.tile_n, " cluster ", c.cluster_m, "x", c.cluster_n, c.pingpong ? " in turns" : "",
                c.transposed ? " transposed" : "", c.producers ? "" : " self-fed",
                c.split_k > 1 ? concat(" split ", c.split_k) : "");
}

}  // namespace gatefold::cuda::sm90
