#pragma once

#include <array>
#include <cstdint>

// Sums of products in single precision, eight lanes at a time: a few rows of weights with a few tokens.
namespace gatefold::cpu {

// Rows of weights at a time: four independent sums hide half of an addition's latency, two tokens of them all of it.
constexpr int dot_rows = 4;
using DotSums = std::array<float, dot_rows>;

template <class Weight>
using WeightRows = std::array<const Weight*, dot_rows>;

// A weight as it is stored. Of two that share a word, the first becomes an fp32 by one shift, the second by one mask:
// eight words are the eight first ones and the eight second ones. So x lies in that order for them, in each group of 16
// that is whole: pair_up() brings it there.
struct Bf16 {
  std::uint16_t bits;
};
void pair_up(float* x, std::int64_t count);

// sums[t][i] += row t of x . row i of the weights, for `tokens` rows of x that are ld_x elements apart, over `count`
// elements, which begin a group. Weight: float or Bf16.
template <class Weight>
void add_dots(const WeightRows<Weight>& weights, const float* x, std::int64_t ld_x, std::int64_t tokens,
              std::int64_t count, DotSums* sums);

}  // namespace gatefold::cpu
