#pragma once

#include <cstdint>

namespace gatefold {

// Bytes from one row to the next where we may choose. Lines that lie a multiple of 4 KiB apart compete for the same set
// of a CPU's first-level cache, and the products read a column of several rows at once: such rows get a line more
// (docs/kernels/cpu.md).
constexpr std::int64_t cache_line_bytes = 64;
constexpr std::int64_t conflict_bytes = 4096;

constexpr bool rows_conflict(std::int64_t row_bytes) { return row_bytes % conflict_bytes == 0; }

constexpr std::int64_t spread_stride(std::int64_t row_bytes) {
  return rows_conflict(row_bytes) ? row_bytes + cache_line_bytes : row_bytes;
}

}  // namespace gatefold
