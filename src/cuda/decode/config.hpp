#pragma once

#include <cstdint>

// The sizes of the decode kernels, and the picture that the arithmetic below belongs to (kernel.cuh).
namespace gatefold::cuda::decode {

enum class Product : std::uint8_t { gemm, gate_up };

// A block of eight warps computes a tile of 16, 32 or 64 weight rows for up to 8 x token_groups tokens; each warp takes
// every eighth group of 64 elements of the sums, a line of 128 bytes of each row.
//
//            k ->   0        64       128      192      ...      512      576
//      row  0     [ warp 0 | warp 1 | warp 2 | warp 3 | ...    | warp 0 | warp 1 | ...
//       ...       [
//      row 15     [
//
// The weights' bytes are the whole cost of decoding, so what counts is how many of them are under way: Little's law
// requests 3.35 TB/s x 1 us / 132 multiprocessors = 25 KB on each of an H100. A warp keeps `stages` groups under way, 2
// KB for every 16 rows. x is read once for each tile, from L1 or L2: tokens / rows times the weights' bytes.
struct Config {
  int token_groups = 1;  // of 8 tokens
  int row_groups = 1;    // of 16 weight rows
  int stages = 4;
  int blocks = 2;       // on a multiprocessor
  int sum_buffers = 2;  // two: a tile's sums are added up while the next tile's come

  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int element_bytes = 2;
  static constexpr int chunk_elements = 16 / element_bytes;  // of a 16-byte access
  static constexpr int steps = 2;  // of a group; a step is 32 elements: two k16 products of mma.sync
  static constexpr int step_elements = 4 * chunk_elements;
  static constexpr int group_elements = steps * step_elements;
  static constexpr int line_bytes = group_elements * element_bytes;

  constexpr int tokens() const { return 8 * token_groups; }
  constexpr int rows() const { return 16 * row_groups; }
  constexpr int stage_bytes() const { return rows() * line_bytes; }
  constexpr int ring_bytes() const { return warps * stages * stage_bytes(); }
  constexpr int table_bytes() const { return warps * rows() * 8; }     // the rows' addresses, for each warp
  constexpr int sums_pitch() const { return rows() + 4; }              // floats: 4 x 8 rows fill the 32 banks
  constexpr int warp_sums() const { return tokens() * sums_pitch(); }  // floats
  constexpr int sums_bytes() const { return sum_buffers * warps * warp_sums() * static_cast<int>(sizeof(float)); }
  // Never so little that one more block would fit on a multiprocessor of 9.0: a launch's blocks would then stand three
  // on some and one on others, and each has its share of the tiles from the beginning.
  constexpr int shared_bytes() const {
    const int needed = ring_bytes() + table_bytes() + sums_bytes();
    const int least = multiprocessor_bytes / (blocks + 1) - reserved_bytes + 16;
    return needed > least ? needed : least;
  }
  static constexpr int multiprocessor_bytes = 228 * 1024;  // shared memory of 9.0's
  static constexpr int reserved_bytes = 1024;              // of each block, for the system
};

// Where the 16-byte chunk `chunk` of a line stands in it. The halves of every second line change places: a quarter of a
// warp, which reads half of the lines of two neighbouring rows at a time, finds them in all 32 banks.
constexpr int place_of_chunk(int row, int chunk) { return chunk ^ (row % 2 * 4); }

// Columns of the output in one tile: of gate_up's 16 rows eight are gate's and eight are up's, of the same columns.
constexpr int tile_columns(Product product, const Config& config) {
  return product == Product::gate_up ? config.rows() / 2 : config.rows();
}

}  // namespace gatefold::cuda::decode
