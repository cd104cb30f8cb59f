#pragma once

#include <array>
#include <cstdint>

#include "core/problem.hpp"
#include "cuda/sm90_decode/config.hpp"

// How many blocks divide a tile's sums among them: pure host code.
namespace gatefold::cuda::sm90_decode {

constexpr std::array splits{1, 2, 4, Config::largest_split};

// How many clusters of so many blocks a device holds at a time, in the order of `splits`; 0: none.
using ResidentClusters = std::array<int, splits.size()>;

std::int64_t row_tiles(Product product, const Problem& problem);
std::int64_t k_steps(const Problem& problem);

// The split for which the blocks with most to do have least, of those that the device can hold and that leave no block
// without terms; 0 where it holds none.
// It does not hang on the number of tokens, and so the order of a sum's terms doesn't either.
int split_of(Product product, const Problem& problem, const ResidentClusters& clusters);

}  // namespace gatefold::cuda::sm90_decode
