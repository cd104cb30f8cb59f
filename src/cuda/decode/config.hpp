#pragma once

#include <cstdint>

// The sizes of the decode kernels, and the picture that the arithmetic below belongs to (kernel.cuh).
namespace gatefold::cuda::decode {

enum class Product : std::uint8_t { gemm, gate_up };

// A block of sixteen warps, one on a multiprocessor, computes a tile of 16 or 32 weight rows for up to 8 x token_groups
// tokens; each warp takes every sixteenth run of 128 elements of the sums, 256 bytes of each row.
//
//            k ->   0        128      256      384      ...      2048     2176
//      row  0     [ warp 0 | warp 1 | warp 2 | warp 3 | ...    | warp 0 | warp 1 | ...
//       ...       [
//      row 15     [
//
// The weights' bytes are the whole cost of decoding. So what counts is how many of them are under way, for Little's law
// requests 4.6 TB/s x 1 us / 132 multiprocessors = 35 KB on each of an H200, and that those under way lie side by side:
// 4 KiB of each row are read at about one time, 256 bytes of it by one instruction. A warp keeps `stages` groups under
// way, 4 KiB each. x is read once, into registers, or once for each tile, from L1 or L2: tokens / rows times the
// weights' bytes.
struct Config {
  int token_groups = 1;   // of 8 tokens
  int row_groups = 1;     // of 16 weight rows
  int steps = run_steps;  // of a group: all of a run, or a half
  int stages = 2;
  int sum_buffers = 2;  // two: sums are added up while the next ones come
  // Runs of each warp whose x stays in registers, for all of a block's tiles: all that it has, of sums of up to
  // resident_elements() terms. 0: x is read anew for each tile.
  int resident_runs = 0;

  static constexpr int warps = 16;
  static constexpr int threads = 32 * warps;
  static constexpr int element_bytes = 2;
  static constexpr int chunk_elements = 16 / element_bytes;  // of a 16-byte access
  static constexpr int step_elements = 4 * chunk_elements;   // two k16 products of mma.sync
  static constexpr int run_steps = 4;
  static constexpr int run_elements = run_steps * step_elements;
  static constexpr int run_stride = warps * run_elements;  // from a warp's run to its next
  static constexpr int tokens_at_once = 8;                 // whose sums are added up together

  constexpr int tokens() const { return 8 * token_groups; }
  constexpr int resident_elements() const { return resident_runs * run_stride; }
  // Whether sums of so many terms can be computed.
  constexpr bool takes(std::int64_t depth) const { return resident_runs == 0 || depth <= resident_elements(); }
  constexpr int rows() const { return 16 * row_groups; }
  constexpr int group_elements() const { return steps * step_elements; }
  constexpr int line_bytes() const { return group_elements() * element_bytes; }  // of a row in a group
  constexpr int line_chunks() const { return line_bytes() / 16; }
  constexpr int stage_bytes() const { return rows() * line_bytes(); }
  constexpr int ring_bytes() const { return warps * stages * stage_bytes(); }
  constexpr int table_bytes() const { return warps * rows() * 8; }           // the rows' addresses, for each warp
  constexpr int sums_pitch() const { return rows() + 4; }                    // floats: 4 x 8 rows fill the 32 banks
  constexpr int warp_sums() const { return tokens_at_once * sums_pitch(); }  // floats
  constexpr int sums_bytes() const { return sum_buffers * warps * warp_sums() * static_cast<int>(sizeof(float)); }
  constexpr int shared_bytes() const { return ring_bytes() + table_bytes() + sums_bytes(); }
  // x of the next group is in registers, too, where there is room for it: a thread has 128.
  constexpr bool reads_ahead() const { return resident_runs == 0 && token_groups <= 2; }

  // A warp's groups: the rest of a run, then its next run. The order of a sum's terms is the same whatever `steps` is.
  static constexpr int first_group(int warp) { return warp * run_elements; }
  constexpr int next_group(int at) const {
    at += group_elements();
    return at % run_elements == 0 ? at - run_elements + run_stride : at;
  }
};

// Where the 16-byte chunk `chunk` of a line stands in it. The halves of every second line change places: a quarter of a
// warp, which reads half of the lines of two neighbouring rows at a time, finds them in all 32 banks.
constexpr int place_of_chunk(int row, int chunk) { return chunk ^ (row % 2 * 4); }

// Columns of the output in one tile: of gate_up's 16 rows eight are gate's and eight are up's, of the same columns.
constexpr int tile_columns(Product product, const Config& config) {
  return product == Product::gate_up ? config.rows() / 2 : config.rows();
}

}  // namespace gatefold::cuda::decode
