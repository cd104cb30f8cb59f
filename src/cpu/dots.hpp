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

// A weight as it is stored.
struct Bf16 {
  std::uint16_t bits;
};

// Brings x into the order that weights of bf16 are multiplied in. Two of them share a word; the first becomes an fp32
// by a shift, the second by a mask. So of each whole group of 16 come the eight first ones, then the eight second ones.
constexpr std::int64_t pairs_group = 16;
void split_pairs(float* x, std::int64_t count);

// sums[t][i] += row t of x . row i of the weights, for `tokens` rows of x that are ld_x elements apart, over `count`
// elements, which begin a group. Weight: float, or Bf16 with x in the order of split_pairs.
template <class Weight>
void add_dots(const WeightRows<Weight>& weights, const float* x, std::int64_t ld_x, std::int64_t tokens,
              std::int64_t count, DotSums* sums);

}  // namespace gatefold::cpu
