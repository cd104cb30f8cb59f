#pragma once

#include <cstdint>
#include <string>

#include "core/problem.hpp"
#include "core/types.hpp"

// How one sm_80 kernel is built. Pure host code, so that the choice can be printed and tested without a GPU.
namespace gatefold::cuda::sm80 {

// The order of the weight rows of a gate_up tile in shared memory, which decides where the two halves of an output
// element meet (see gating.hpp).
enum class Gating : std::uint8_t {
  none,             // one weight only: gemm, gemm_gated
  even_odd,         // gate row, up row, gate row, ...
  groups_of_eight,  // eight gate rows, eight up rows, ...
};

constexpr const char* to_string(Gating gating) {
  switch (gating) {
    case Gating::none: return "none";
    case Gating::even_odd: return "even_odd";
    case Gating::groups_of_eight: return "groups_of_eight";
  }
  return "?";
}

// How tiles come to shared memory.
enum class Copies : std::uint8_t {
  any_rows,  // TileLoader: cp.async, half a line at a time
  lines,     // LineLoader: cp.async, whole lines of rows at even distances
  boxes,     // BoxLoader: the copy engine of compute capability 9.0 and later
};

constexpr const char* to_string(Copies copies) {
  switch (copies) {
    case Copies::any_rows: return "any rows";
    case Copies::lines: return "lines";
    case Copies::boxes: return "boxes";
  }
  return "?";
}

// A template argument: one kernel for each value. Tiles count weight rows, so a gate_up tile of tile_n columns yields
// tile_n / 2 columns of the output.
struct Config {
  Op op = Op::gemm;
  DType dtype = DType::bf16;
  Gating gating = Gating::none;
  int tile_m = 0;
  int tile_n = 0;
  int tile_k = 0;
  int stages = 0;   // tiles of x and of the weights in shared memory
  int warps_m = 0;  // how the warps divide the tile
  int warps_n = 0;
  int blocks_per_sm = 1;             // that share a multiprocessor
  Copies copies = Copies::any_rows;  // the others where they can follow the rows (layout_fit.hpp)
  bool rolling = false;              // RollingMainloop multiplies
  int cluster = 1;                   // blocks with neighbouring tiles of columns, who share their tokens

  constexpr bool gated_pair() const { return gating != Gating::none; }
  constexpr int threads() const { return warps_m * warps_n * 32; }
  constexpr int out_columns() const { return gated_pair() ? tile_n / 2 : tile_n; }
  constexpr int accumulators() const { return tile_m * tile_n / threads(); }  // of a thread
  constexpr int element_size() const { return static_cast<int>(size_of(dtype)); }
  constexpr int tile_bytes() const { return (tile_m + tile_n) * tile_k * element_size(); }  // of a k-tile
  // A stage that the copy engine fills ends with its barriers, and the next begins where swizzling does.
  static constexpr int barrier_bytes = 1024;
  constexpr int stage_bytes() const { return tile_bytes() + (copies == Copies::boxes ? barrier_bytes : 0); }
  // The output tile goes out through a staging tile, at once or in parts; gemm's is twice as wide as gate_up's, and in
  // two parts it leaves room for a fourth stage. gemm_gated's gate tile must be there as a whole.
  constexpr int store_parts() const { return op == Op::gemm ? 2 : 1; }
  constexpr int staging_bytes() const { return tile_m / store_parts() * out_columns() * element_size(); }
  constexpr int shared_bytes() const { return stages * stage_bytes() + staging_bytes(); }
  // Of LineLoader, whose eight lanes take a row: how far apart a thread's rows of x and of the weights lie in the tile,
  // and the latter in their half.
  constexpr int rows_per_pass() const { return threads() / 8; }
  constexpr int lines_per_pass() const { return gated_pair() ? rows_per_pass() / 2 : rows_per_pass(); }
  // Of BoxLoader: the tokens that a box brings, two boxes for each block of the cluster.
  constexpr int token_box_rows() const { return tile_m / 2 / cluster; }
  // Of a last round that whole tiles would not fill, tiles of one or two thirds of the width are computed.
  constexpr bool narrows() const { return rolling; }

  bool operator==(const Config&) const = default;
};

// What tells a kernel from the others of its op and type: "256x192 boxes rolling".
std::string name(const Config& config);

// The name and what more there is to say.
std::string to_string(const Config& config);

}  // namespace gatefold::cuda::sm80
