#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/vector_math.hpp"
#include "swap_ffn/config.hpp"

// The passes over rows between the CPU's products.
namespace gatefold::swap_ffn {

// Rows [first, first + rows) of the B C rows, and the block's part of the workspace.
struct Block {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  int threads = 1;
  std::byte* s = nullptr;         // [rows, D], of the description's type
  float* wide = nullptr;          // [rows, D]: s after measure_rows
  float* inverse_rms = nullptr;   // [rows]
  const float* routes = nullptr;  // [rows, R]: s . router^T
};

struct RouterWeights {
  const float* swap_w;  // [R]
  const float* swap_b;  // [1]
  const float* bank_w;  // [R, 4]
  const float* bank_b;  // [4]
};

// s = x * core_scale + core_shift, in fp32, rounded once.
void start_rows(const Config& config, const Block& block, const std::byte* x, const float* core_scale,
                const float* core_shift);

// wide and inverse_rms from s.
void measure_rows(const Config& config, const Block& block);

// The decisions of each row from its sums with the router's weights; where it swaps, the row changes places with its
// bank in ram, and inverse_rms becomes that of the row that came in. decisions may be null.
void swap_rows(const Config& config, const Block& block, const RouterWeights& weights, std::byte* ram,
               std::uint8_t* stream_map, std::uint8_t* decisions);

// pooled [B, K, D]: adds alpha * wide of the block's rows, in their order; a sequence's first core begins its sums.
void pool_rows(const Config& config, const Block& block, const float* alpha, float* pooled);

}  // namespace gatefold::swap_ffn
