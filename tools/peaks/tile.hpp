#pragma once

#include "peaks/loops.hpp"

// The loops, for a policy of one instruction set. It has Vector, in which sums are, Operand, `multiply_add`, `load`,
// `tokens`, so that 4 x tokens sums and what they are made of fill the registers, `flops` of one multiply_add, and
// Words, which are read from memory and combined by `mix`.
namespace gatefold::peaks {
namespace {

#define GATEFOLD_PEAK __attribute__((always_inline)) inline

constexpr int tile_rows = 4;
constexpr int steps = 16;  // (4 + 6) rows of 16 x 64 bytes are 10 KiB of the first-level cache

template <class Set>
constexpr int operands_of_step = tile_rows + Set::tokens;

template <class Set>
constexpr std::size_t operand_bytes = sizeof(typename Set::Operand) * operands_of_step<Set> * steps;

template <class Set>
constexpr double flops_of_pass = static_cast<double>(Set::flops) * tile_rows * Set::tokens * steps;

// Every sum is returned, so that none can be left out.
template <class Set>
float multiply_tile(const std::byte* operands, std::int64_t passes) {
  using Vector = typename Set::Vector;
  using Operand = typename Set::Operand;
  Vector sums[Set::tokens][tile_rows] = {};
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::byte* next = operands;
    for (int step = 0; step < steps; ++step) {
      Operand rows[tile_rows];
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) rows[r] = Set::load(next + r * sizeof(Operand));
#pragma GCC unroll 6
      for (int t = 0; t < Set::tokens; ++t) {
        const Operand token = Set::load(next + (tile_rows + t) * sizeof(Operand));
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r) sums[t][r] = Set::multiply_add(rows[r], token, sums[t][r]);
      }
      next += operands_of_step<Set> * sizeof(Operand);
    }
  }
  float total = 0.0F;
  for (int t = 0; t < Set::tokens; ++t) {
    for (int r = 0; r < tile_rows; ++r) {
      float lanes[sizeof(Vector) / sizeof(float)];
      __builtin_memcpy(lanes, &sums[t][r], sizeof lanes);
      for (const float lane : lanes) total += lane;
    }
  }
  return total;
}

template <class Set>
constexpr ProductLoop product_loop(const char* instruction_set, Operands operands) noexcept {
  return {instruction_set, operands, operand_bytes<Set>, flops_of_pass<Set>, multiply_tile<Set>};
}

// In so many streams at once, line by line: some machines' prefetching serves one best, some several.
template <class Set, int streams>
std::uint64_t read_streams(const std::byte* data, std::size_t bytes) {
  using Words = typename Set::Words;
  constexpr std::size_t line = 64;
  constexpr int parts = static_cast<int>(line / sizeof(Words));
  const std::size_t stride = bytes / streams;
  Words mixed[streams][parts] = {};
  for (std::size_t at = 0; at < stride; at += line) {
#pragma GCC unroll 4
    for (int s = 0; s < streams; ++s) {
#pragma GCC unroll 4
      for (int p = 0; p < parts; ++p) {
        mixed[s][p] = Set::mix(mixed[s][p], data + static_cast<std::size_t>(s) * stride + at + p * sizeof(Words));
      }
    }
  }
  std::uint64_t total = 0;
  for (int s = 0; s < streams; ++s) {
    std::uint64_t words[line / sizeof(std::uint64_t)];
    __builtin_memcpy(words, mixed[s], sizeof words);
    for (const std::uint64_t word : words) total ^= word;
  }
  return total;
}

}  // namespace
}  // namespace gatefold::peaks
