#pragma once

#include <cuda.h>

#include <cstdint>

#include "core/layout.hpp"
#include "core/status.hpp"

namespace gatefold::cuda {

// How many bytes memory sends to L2 at a time, around those that are asked for.
enum class Promotion : std::uint8_t { bytes_128, bytes_256 };

enum class Swizzle : std::uint8_t { none, bytes_64, bytes_128 };

// A row-major matrix of 16-bit elements as the copy engine sees it.
struct MatrixView {
  const void* base;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t ld;
};

// Boxes of box_rows x box_columns of a plain matrix.
Status encode_matrix(CUtensorMap& map, CUtensorMapDataType type, const MatrixView& view, int box_rows, int box_columns,
                     Swizzle swizzle);

// Boxes of box_rows x 64 of one half of the weights, as a tensor of rank 3 (column, row in a block, block):
// element (k, r, b) lies at base + (first + b * period + r) * ld + k. A block of rows or fewer than box_rows each fills
// the box block by block: box_rows is a multiple of the block, or the block of box_rows.
Status encode_half(CUtensorMap& map, CUtensorMapDataType type, const MatrixView& half, const LineMap& lines,
                   int box_rows, Promotion promotion);

}  // namespace gatefold::cuda
