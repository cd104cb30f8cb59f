#pragma once

#include <cstdint>

namespace gatefold::cuda::swap_ffn {

// Rows of s that a block of the routing kernel has: as few as make each of an H200's 132 multiprocessors one block, as
// long as there are enough; of more rows more share what a block reads of the router's weights.
constexpr int rows_of_route_block(std::int64_t rows) { return rows > 2 * 132 * 8 ? 32 : rows > 132 * 8 ? 16 : 8; }

// The same of the kernel with plain multiply-adds, which takes longer for each.
constexpr int rows_of_plain_route_block(std::int64_t rows) { return rows > 132 * 4 ? 8 : 4; }

}  // namespace gatefold::cuda::swap_ffn
