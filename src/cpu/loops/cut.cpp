#include "cpu/loops/cut.hpp"

#include <algorithm>

namespace gatefold::cpu {
namespace {

constexpr std::int64_t items_a_thread = 8;  // at least, so that no thread waits long for the last one
constexpr std::int64_t few_tokens = 128;    // with which panels of half as many rows are faster (cpu_log.md)
constexpr std::int64_t short_block = 2048;  // bytes: 128 rows' blocks, and the next ones, leave room in 1 MiB of cache
constexpr std::int64_t long_block = 4096;   // in 2 MiB
constexpr std::int64_t enough_rows = 64;    // with fewer, x comes from memory too often
constexpr std::int64_t large_second_level = std::int64_t{2} << 20;

}  // namespace

std::int64_t Cut::row_unit() const { return std::max(sums_granule, kernel.tile_rows / multiplied_halves); }

std::int64_t Cut::most_sums_of(std::int64_t tokens) const {
  const std::int64_t of_item = most_rows / multiplied_halves * std::min(tokens, most_tokens());
  return halves * round_up(std::min(of_item, most_sums / halves), sums_granule);
}

std::int64_t Cut::most_scratch_of(std::int64_t tokens) const {
  const std::int64_t of_item = std::min(tokens, most_tokens());
  return kernel.scratch_for(widens(of_item), panel_rows(of_item));
}

bool Cut::widens(std::int64_t tokens) const {
  return kernel.widened_from > 0 && tokens >= kernel.widened_from && second_level >= kernel.widened_cache;
}

std::int64_t Cut::panel_rows(std::int64_t tokens) const {
  const bool many_tokens = tokens > few_tokens;
  const bool large = second_level >= large_second_level;
  if (widens(tokens)) return kernel.widened_rows * (many_tokens && large ? 2 : 1);
  const std::int64_t block = std::min(row_bytes, kernel.block_bytes);
  return many_tokens && block <= (large ? long_block : short_block) ? most_rows : most_rows / 2;
}

// As many tokens as an item may have, in blocks of equal size, and as many rows as their sums leave room for; less of
// either until every thread has several items.
Division Cut::divide(std::int64_t tokens) const {
  const std::int64_t some = std::max<std::int64_t>(tokens, 1);
  Division d;
  d.tokens = std::min(some, round_up(ceil_div(some, ceil_div(some, most_tokens())), token_unit()));
  d.rows = std::min(panel_rows(d.tokens) / multiplied_halves, most_sums / halves / d.tokens / row_unit() * row_unit());
  const auto count = [&] {
    d.panels = ceil_div(columns, d.rows);
    d.blocks = ceil_div(tokens, d.tokens);
    return d.items();
  };
  while (count() < threads * items_a_thread) {
    if (d.rows <= enough_rows && d.tokens >= 16 * kernel.tile_tokens) {
      d.tokens = round_up(d.tokens / 2, token_unit());
    } else if (d.rows > row_unit()) {
      d.rows = round_up(d.rows / 2, row_unit());
    } else {
      break;
    }
  }
  return d;
}

}  // namespace gatefold::cpu
