#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gatefold/gatefold.h"

namespace gatefold::checkpoint {

// A stream of uniform numbers in which element i depends on the key and i only: any part can be made by any thread.
struct UniformStream {
  std::uint64_t key;
  float bound;  // numbers lie in (-bound, bound)
};

// The stream of one tensor of a checkpoint.
UniformStream tensor_stream(std::uint64_t seed, std::uint64_t tensor, std::int64_t fan_in);

// Elements first, first + 1, ... of the stream, rounded to nearest even, filling `out`.
void fill_uniform(const UniformStream& stream, gatefold_dtype dtype, std::uint64_t first, std::span<std::byte> out);

}  // namespace gatefold::checkpoint
