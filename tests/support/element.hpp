#pragma once

#include <cstddef>

#include "gatefold/gatefold.h"

// Elements by the definition of their formats, in arithmetic: nothing here is shared with the library's bit tricks.
namespace gatefold::test {

struct Format {
  int bytes;
  int significand_bits;  // with the leading one
  int min_exponent;      // of the smallest normal number
  double largest;        // finite
};
Format format_of(gatefold_dtype dtype);

inline std::size_t element_size(gatefold_dtype dtype) { return static_cast<std::size_t>(format_of(dtype).bytes); }

// The nearest value of the format, ties to the even significand; beyond the largest infinity, as IEEE 754 has it.
double round_to(gatefold_dtype dtype, double value);

// value must be one of the format's.
void encode(gatefold_dtype dtype, double value, std::byte* to);
double decode(gatefold_dtype dtype, const std::byte* from);

}  // namespace gatefold::test
