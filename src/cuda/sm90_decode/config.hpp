#pragma once

#include <cstdint>

// The sizes of the kernels for few tokens on 9.0, and who in a cluster adds up what: arithmetic that the host shares
// with the kernel.
namespace gatefold::cuda::sm90_decode {

enum class Product : std::uint8_t { gemm, gate_up };

// One compiled kernel. A tile is two slabs of at most 64 weight rows (slab_rows, which the host chooses: division.hpp),
// the rows of the wgmmas, and so many tokens, their columns (swap-AB). Of gate_up the first slab is gate's rows and the
// second up's, of the same columns; of gemm the slabs are neighbours.
struct Config {
  int tokens = 8;  // a multiple of 8: the N of the wgmma
  Product product = Product::gate_up;

  static constexpr int slab = 64;
  static constexpr int slabs = 2;
  static constexpr int rows = slab * slabs;
  static constexpr int element_bytes = 2;
  static constexpr int box_k = 128 / element_bytes;  // the swizzle's row
  // A step brings 256 neighbouring bytes of each row at a time: memory reads them faster than lines of 128 one by one.
  static constexpr int boxes = 2;
  static constexpr int tile_k = box_k * boxes;
  static constexpr int consumer_warps = 4;                   // a warpgroup
  static constexpr int threads = 32 * (consumer_warps + 1);  // and one warp whose first thread produces
  static constexpr int largest_split = 8;                    // blocks of a cluster
  static constexpr int most_shared_bytes = 227 * 1024;       // of a block
  static constexpr int unit_bytes = slabs * 32 * 4 * 4;      // of fp32 sums
  static constexpr int slack_bytes = 1024;                   // barriers

  // A unit is a warp's 16 rows of both slabs and eight tokens: what one thread holds in two vectors of four sums.
  constexpr int groups() const { return tokens / 8; }
  constexpr int units() const { return consumer_warps * groups(); }
  // Room for as many units as a block is ever sent, from 1 to largest_split blocks (Division).
  constexpr int mailbox_units() const { return consumer_warps * (groups() + groups() % 2); }
  constexpr int mailbox_bytes() const { return mailbox_units() * unit_bytes; }

  constexpr int stage_bytes() const { return (rows + tokens) * tile_k * element_bytes; }
  constexpr int stages() const { return (most_shared_bytes - slack_bytes - mailbox_bytes()) / stage_bytes(); }
  constexpr int shared_bytes() const { return stages() * stage_bytes() + mailbox_bytes() + slack_bytes; }
};

// The columns of the output in one tile.
constexpr int tile_columns(Product product, int slab_rows) {
  return product == Product::gate_up ? slab_rows : Config::slabs * slab_rows;
}

// From the first row of a tile's first slab to its second slab's, each counted in its half of the weights.
constexpr int slab_distance(Product product, int slab_rows) { return product == Product::gate_up ? 0 : slab_rows; }

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
