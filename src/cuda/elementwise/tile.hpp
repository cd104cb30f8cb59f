#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/arithmetic.hpp"

// How blocks of threads cover a [rows, columns] grid of units (a unit is what one thread handles at once: 16 bytes of
// output, or one element). Pure host code.
namespace gatefold::cuda {

// A block is threads / lanes rows of `lanes` threads. Each thread handles column_steps x row_steps units, `lanes`
// columns and threads / lanes rows apart. All four are powers of two.
struct TileShape {
  std::int32_t log2_lanes = 0;
  std::int32_t log2_column_steps = 0;
  std::int32_t log2_row_steps = 0;
  std::int32_t log2_threads = 0;

  constexpr std::int64_t columns() const { return std::int64_t{1} << (log2_lanes + log2_column_steps); }
  constexpr std::int64_t rows() const { return std::int64_t{1} << (log2_threads - log2_lanes + log2_row_steps); }
};

constexpr std::int64_t covered_units(const TileShape& tile, std::int64_t rows, std::int64_t columns) {
  return ceil_div(rows, tile.rows()) * tile.rows() * ceil_div(columns, tile.columns()) * tile.columns();
}

// Units per thread, as a power of two: as many as keep every multiprocessor busy with four blocks, at most `log2_most`.
constexpr int pick_log2_units(std::int64_t units, int log2_threads, int log2_most, int multiprocessors) {
  const std::int64_t per_thread = units / (std::int64_t{4 * multiprocessors} << log2_threads);
  if (per_thread <= 1) return 0;
  return std::min(log2_most, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(per_thread))) - 1);
}

// The shape with the fewest units outside the grid, and of those the widest: neighbouring threads then read
// neighbouring addresses. At least 32 threads lie along a row that is long enough for them.
constexpr TileShape pick_tile(std::int64_t rows, std::int64_t columns, int log2_threads, int log2_units) {
  const int log2_columns = std::min<int>(
      log2_threads, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(columns - 1))));  // rounded up
  TileShape best;
  std::int64_t best_covered = -1;
  for (int lanes = log2_columns; lanes >= std::min(5, log2_columns); --lanes) {
    for (int steps = log2_units; steps >= 0; --steps) {
      const TileShape tile{lanes, steps, log2_units - steps, log2_threads};
      const std::int64_t covered = covered_units(tile, rows, columns);
      if (best_covered < 0 || covered < best_covered) {
        best = tile;
        best_covered = covered;
      }
    }
  }
  return best;
}

// Runs of one half that lie apart (an interleaved layout's blocks), of any length in units: column c of a half begins
// c + (c / length) * length units after the half's first, since a run of the other half follows each.
//
// The division by one multiplication: with inverse = ceil(2^64 / length), c * inverse / 2^64 exceeds c / length by less
// than c / 2^64, so the quotient is right or one too large.
struct AnyRun {
  std::int64_t length = 0;
  std::uint64_t inverse = 0;

  AnyRun() = default;
  explicit constexpr AnyRun(std::int64_t of_length)  // 2 or more
      : length(of_length), inverse(~std::uint64_t{0} / static_cast<std::uint64_t>(of_length) + 1) {}

  constexpr std::int64_t input_column(std::int64_t c) const {
    __extension__ using Product = unsigned __int128;
    const auto run = static_cast<std::int64_t>((Product{static_cast<std::uint64_t>(c)} * inverse) >> 64);
    return c + (run - (run * length > c ? 1 : 0)) * length;
  }
};

// Threads of a block that goes along one long row of `units`, one each. Large blocks read longer pieces of each tensor,
// which is worth up to 0.7 % where there are many of them; where there are few, small ones fill the chip more evenly.
constexpr int most_row_threads = 1024;
constexpr int least_row_threads = 256;

constexpr int pick_row_threads(std::int64_t units, int multiprocessors) {
  constexpr std::int64_t many = 30;  // per multiprocessor, of which two run at a time
  return units >= many * multiprocessors * most_row_threads ? most_row_threads : least_row_threads;
}

// A launch's grid for column_tiles x row_tiles blocks: x along the columns, y and z from row to row.
struct BlockGrid {
  unsigned x = 0, y = 0, z = 0;
  bool fits = false;
};

constexpr std::int64_t most_blocks_x = 0x7fffffff;

constexpr BlockGrid block_grid(std::int64_t column_tiles, std::int64_t row_tiles) {
  constexpr std::int64_t most_yz = 65535;
  const std::int64_t z = ceil_div(row_tiles, most_yz);
  if (column_tiles > most_blocks_x || z > most_yz) return {};
  return {static_cast<unsigned>(column_tiles), static_cast<unsigned>(ceil_div(row_tiles, z)), static_cast<unsigned>(z),
          true};
}

}  // namespace gatefold::cuda
