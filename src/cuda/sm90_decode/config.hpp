#pragma once

#include <cstdint>

// The sizes of the kernels for few tokens on 9.0, and who in a cluster adds up what: arithmetic that the host shares
// with the kernel.
namespace gatefold::cuda::sm90_decode {

enum class Product : std::uint8_t { gemm, gate_up };

// One compiled kernel. A tile is two slabs of at most 64 or 32 weight rows (slab_rows, which the host chooses:
// division.hpp), the rows of the wgmmas, and so many tokens, their columns (swap-AB). Of gate_up the first slab is
// gate's rows and the second up's, of the same columns; of gemm the slabs are neighbours.
struct Config {
  int tokens = 8;  // a multiple of 8: the N of the wgmma
  Product product = Product::gate_up;
  int slab = 64;  // or 32: rows

  static constexpr int slabs = 2;
  static constexpr int wgmma_rows = 64;
  static constexpr int element_bytes = 2;
  static constexpr int box_k = 128 / element_bytes;  // the swizzle's row
  // A step brings 256 neighbouring bytes of each row at a time, or 512 of half as many: memory reads them faster than
  // lines of 128 one by one.
  static constexpr int step_bytes = 32 * 1024;  // of weights
  // 128 KiB of weights under way: on an H200 no more is faster, and an mlp of Llama 70B with 32 tokens is 1 % slower
  // with 160 (docs/kernels/decode_log.md).
  static constexpr int stages = 4;
  static constexpr int consumer_warps = 4;  // a warpgroup
  static constexpr int finisher_warps = 8;
  static constexpr int threads = 32 * (consumer_warps + finisher_warps + 1);  // and the one that produces
  static constexpr int largest_split = 8;                                     // blocks of a cluster
  static constexpr int most_shared_bytes = 227 * 1024;                        // of a block
  static constexpr int unit_bytes = slabs * 32 * 4 * 4;                       // of fp32 sums
  static constexpr int slack_bytes = 1024;                                    // barriers

  constexpr int rows() const { return slab * slabs; }
  // Gate's and up's slab are a request each, gemm's, which are neighbours, one.
  constexpr int requests() const { return product == Product::gate_up ? slabs : 1; }
  constexpr int request_rows(int slab_rows) const { return slabs / requests() * slab_rows; }
  constexpr int wgmmas() const { return rows() / wgmma_rows; }
  constexpr int boxes() const { return step_bytes / (rows() * box_k * element_bytes); }
  constexpr int tile_k() const { return box_k * boxes(); }

  // A unit is 16 rows of both slabs and eight tokens: what one thread of a warp adds up is two vectors of four sums.
  constexpr int slab_warps() const { return slab / 16; }  // that hold the sums of a slab
  constexpr int groups() const { return tokens / 8; }
  constexpr int units() const { return slab_warps() * groups(); }
  // Room for as many units as a block is ever sent, from 1 to largest_split blocks (Division).
  constexpr int mailbox_units() const { return (units() + largest_split - 1) / largest_split * largest_split; }
  constexpr int mailbox_bytes() const { return mailbox_units() * unit_bytes; }

  constexpr int stage_bytes() const { return step_bytes + tokens * tile_k() * element_bytes; }
  constexpr int shared_bytes() const { return stages * stage_bytes() + mailbox_bytes() + slack_bytes; }
};

// The columns of the output in one tile.
constexpr int tile_columns(Product product, int slab_rows) {
  return product == Product::gate_up ? slab_rows : Config::slabs * slab_rows;
}

// Which of a tile's units each of the `split` blocks of a cluster adds up and stores: unit u is block u split / units'.
struct Division {
  int units;
  int split;

  constexpr int block_of(int unit) const { return unit * split / units; }
  constexpr int first(int block) const { return (block * units + split - 1) / split; }
  constexpr int count(int block) const { return first(block + 1) - first(block); }
  constexpr int most() const { return (units + split - 1) / split; }
};

}  // namespace gatefold::cuda::sm90_decode
