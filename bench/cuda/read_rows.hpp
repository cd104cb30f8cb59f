#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gatefold::bench {

// How a block's ring is filled with a tile's rows. Side by side: 16 KiB whatever the rows. Pieces: `bytes` of one row
// by a copy. The others by the copy engine's boxes, of all rows of a half of the tile: 128 bytes of each, one box after
// the other; as many boxes in one, in the same order; or in one box `bytes` of each row before the next one.
enum class Request : std::uint8_t { side_by_side, pieces, columns_first, columns_in_one, rows_first };

// Blocks that stay on their multiprocessors and take every so many-th tile. Where there are fewer tiles than blocks,
// two, four and so on take a part of each tile's rows each.
struct Way {
  const char* name;
  Request request;
  int rows;    // of a tile
  int bytes;   // of a row in a slot of the ring: a multiple of 128
  int blocks;  // on a multiprocessor
  int slots;

  constexpr int slot_bytes() const { return rows * bytes; }
};

// Weights [rows, row_bytes] without gaps. In halves: a tile has as many rows of the first half as of the second.
struct RowsToRead {
  const void* base;
  std::int64_t rows;
  std::int64_t row_bytes;
  bool halves;
};

// Reads the rows once and does nothing with them but to look at each slot, after the kernel before it has ended: it is
// launched while that one runs, and fills its ring meanwhile, as a kernel does whose weights are settled. Throws
// std::invalid_argument where the way doesn't divide the rows.
void read_rows(const Way& way, const RowsToRead& weights, void* sink, cudaStream_t stream);

}  // namespace gatefold::bench
