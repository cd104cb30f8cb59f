#pragma once

#include <cuda.h>

#include <cstdint>

#include "core/layout.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace gatefold::cuda {

// How many bytes memory sends to L2 at a time, around those that are requested.
enum class Promotion : std::uint8_t { bytes_128, bytes_256 };

enum class Swizzle : std::uint8_t { none, bytes_64, bytes_128 };

constexpr int swizzle_row_bytes = 128;  // the widest row that is swizzled

// A row-major matrix as the copy engine sees it.
struct MatrixView {
  DType type;
  const void* base;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t ld;
};

// Boxes of box_rows x box_columns of a plain matrix.
Status encode_matrix(CUtensorMap& map, const MatrixView& view, int box_rows, int box_columns, Swizzle swizzle);

// Boxes of box_rows x swizzle_row_bytes of those rows of a matrix that `lines` numbers, view.rows of them, as a tensor
// of rank 3 (column, row in a block, block): element (k, r, b) lies at base + (first + b * period + r) * ld + k. Blocks
// of fewer rows than box_rows fill a box one after the other: box_rows is a multiple of the block, or the block of
// box_rows.
Status encode_lines(CUtensorMap& map, const MatrixView& view, const LineMap& lines, int box_rows, Promotion promotion);

// Boxes of box_rows rows by box_lines neighbouring lines of swizzle_row_bytes, line by line, so that one request brings
// a run of each row: the rows of encode_lines as a tensor of rank 4 (column of a line, row in a block, block, line).
// Columns behind the last whole line are not in it.
Status encode_runs(CUtensorMap& map, const MatrixView& view, const LineMap& lines, int box_rows, int box_lines,
                   Promotion promotion);

// Two matrices of view.rows each, a multiple of 8, of which the second lies `to_second` bytes behind the first, as a
// tensor of rank 4 (column, row of eight, matrix, eight), `eights` rows of the view from one eight to the next. A box
// is box_eights eights of both, eight rows of each by turns.
struct PairOfMatrices {
  MatrixView view;
  std::int64_t to_second;  // a multiple of 16, below 2^40
  std::int64_t eights;
};
Status encode_pair(CUtensorMap& map, const PairOfMatrices& pair, int box_eights, Promotion promotion);

}  // namespace gatefold::cuda
