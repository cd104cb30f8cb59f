#pragma once

#include <cstddef>
#include <cstdint>

#include "gatefold/gatefold.h"

// Random tensors: element i depends on the seed and on i alone, so the same seed gives the same data on any number of
// threads, and a GPU can draw the same.
namespace gatefold::cli {

struct Distribution {
  enum class Kind : std::uint8_t { normal, uniform };
  Kind kind = Kind::normal;
  double scale = 1.0;  // the standard deviation, or the largest magnitude

  static Distribution normal(double deviation) { return {Kind::normal, deviation}; }
  // The weights that torch.nn.Linear starts with: uniform in +-1/sqrt(fan_in).
  static Distribution kaiming_uniform(std::int64_t fan_in);
};

void fill_random(void* data, gatefold_dtype dtype, std::int64_t count, Distribution distribution, std::uint64_t seed);

// A well-mixed 64-bit number for each (seed, index).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index);

}  // namespace gatefold::cli
