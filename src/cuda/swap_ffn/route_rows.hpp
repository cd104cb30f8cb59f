#pragma once

#include <cstdint>

namespace gatefold::cuda::swap_ffn {

// Rows of s that a block of the routing kernel has. With four each an H200's 132 multiprocessors have a block each up
// to 528 rows; of more rows eight share what a block reads of the router's weights.
constexpr int rows_of_route_block(std::int64_t rows) { return rows > 528 ? 8 : 4; }

}  // namespace gatefold::cuda::swap_ffn
