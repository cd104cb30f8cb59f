#include "swap_ffn/cpu_rows.hpp"

#include <algorithm>
#include <cmath>

#include "core/arithmetic.hpp"
#include "cpu/threads.hpp"

namespace gatefold::swap_ffn {
namespace {

// Squares of fp32 are exact in double precision, and neither overflow nor underflow there.
float inverse_rms(const float* row, std::int64_t count, double eps) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t d = 0; d < count; ++d) sum += static_cast<double>(row[d]) * static_cast<double>(row[d]);
  return static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(count) + eps));
}

void measure_row(const Config& c, const Block& block, std::int64_t row) {
  float* wide = block.wide + row * c.hidden_size;
  cpu::widen(block.s + row * c.row_bytes(), c.dtype, c.hidden_size, wide);
  block.inverse_rms[row] = inverse_rms(wide, c.hidden_size, c.eps);
}

struct Decision {
  bool swap;
  unsigned choice;
};

// In double precision: the router's sums are the only thing here that is rounded. sigmoid(v) > 1/2 means v > 0.
Decision decide(const RouterWeights& weights, const float* sums, double scale, std::int64_t width) {
  double swap = static_cast<double>(*weights.swap_b);
  std::array<double, banks> logits{};
  for (std::int64_t b = 0; b < banks; ++b) logits[b] = static_cast<double>(weights.bank_b[b]);
  for (std::int64_t r = 0; r < width; ++r) {
    const double z = static_cast<double>(sums[r]) * scale;
    swap += z * static_cast<double>(weights.swap_w[r]);
    for (std::int64_t b = 0; b < banks; ++b) logits[b] += z * static_cast<double>(weights.bank_w[r * banks + b]);
  }
  return {swap > 0.0, first_largest(logits)};
}

}  // namespace

void start_rows(const Config& c, const Block& block, const std::byte* x, const float* core_scale,
                const float* core_shift) {
  const std::int64_t D = c.hidden_size;
  cpu::share_out(block.rows, block.threads, [&](std::int64_t row) {
    const std::int64_t sequence = (block.first + row) / c.cores;
    const std::int64_t core = (block.first + row) % c.cores;
    float* wide = block.wide + row * D;
    cpu::widen(x + sequence * c.row_bytes(), c.dtype, D, wide);
    for (std::int64_t d = 0; d < D; ++d) wide[d] = wide[d] * core_scale[core * D + d] + core_shift[core * D + d];
    cpu::narrow(wide, c.dtype, D, block.s + row * c.row_bytes());
  });
}

void measure_rows(const Config& c, const Block& block) {
  cpu::share_out(block.rows, block.threads, [&](std::int64_t row) { measure_row(c, block, row); });
}

void swap_rows(const Config& c, const Block& block, const RouterWeights& weights, std::byte* ram,
               std::uint8_t* stream_map, std::uint8_t* decisions) {
  cpu::share_out(block.rows, block.threads, [&](std::int64_t row) {
    const Decision decision = decide(weights, block.routes + row * c.router_width,
                                     static_cast<double>(block.inverse_rms[row]), c.router_width);
    if (decisions != nullptr) {
      decisions[row] = static_cast<std::uint8_t>(decision.choice + (decision.swap ? swapped : 0U));
    }
    if (!decision.swap) return;
    std::uint8_t& map = stream_map[block.first + row];
    std::byte* s = block.s + row * c.row_bytes();
    std::byte* bank = ram + ((block.first + row) * banks + lane(map, decision.choice)) * c.row_bytes();
    std::swap_ranges(s, s + c.row_bytes(), bank);
    map = exchange_lanes(map, decision.choice);
    measure_row(c, block, row);
  });
}

void pool_rows(const Config& c, const Block& block, const float* alpha, float* pooled) {
  const std::int64_t D = c.hidden_size;
  const std::int64_t K = c.collapse_heads;
  constexpr std::int64_t span = 64;  // columns that a thread adds up at a time
  cpu::share_out(ceil_div(D, span), block.threads, [&](std::int64_t part) {
    const std::int64_t begin = part * span;
    const std::int64_t end = std::min(begin + span, D);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const std::int64_t sequence = (block.first + row) / c.cores;
      const std::int64_t core = (block.first + row) % c.cores;
      const float* wide = block.wide + row * D;
      for (std::int64_t k = 0; k < K; ++k) {
        float* sums = pooled + (sequence * K + k) * D;
        const float weight = alpha[core * K + k];
        if (core == 0) {
          for (std::int64_t d = begin; d < end; ++d) sums[d] = weight * wide[d];
        } else {
          for (std::int64_t d = begin; d < end; ++d) sums[d] += weight * wide[d];
        }
      }
    }
  });
}

}  // namespace gatefold::swap_ffn
