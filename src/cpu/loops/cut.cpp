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
constexpr std::int64_t whole_packed = 400;  // tokens, of which x is packed at once; of more, a part at a time

}  // namespace

// At a pace by Zen 5, on which alone it was measured.
Fetch fetch_for(const Caches& caches) {
  if (caches.first_level > 0 && caches.first_level <= small_first_level) return Fetch::to_second_level;
  const bool small_second_level = caches.second_level > 0 && caches.second_level < large_second_level;
  return caches.first_level > 0 && small_second_level ? Fetch::at_a_pace : Fetch::to_first_level;
}

// Outer products were the faster ones on Zen 5 alone, whose cores have 48 KiB and 1 MiB: on Zen 4 tiles are as fast.
bool Cut::packs(std::int64_t tokens, std::int64_t terms) const {
  if (kernel.outer.from == 0) return kernel.packed_tokens > 0;
  return tokens >= kernel.outer.from && terms >= kernel.outer.terms && caches.first_level > small_first_level &&
         caches.second_level < large_second_level;
}

std::int64_t Cut::row_unit(Packing packing) const {
  const std::int64_t of_tiles = std::max(sums_granule, kernel.tile_rows / multiplied_halves);
  if (kernel.outer.from == 0) return of_tiles;
  return std::max(
      {of_tiles, packing.x ? kernel.outer.rows / multiplied_halves : 0, packing.out ? kernel.outer.columns : 0});
}

std::int64_t Cut::token_unit(Packing packing) const {
  return packing.x || packing.out ? std::max(kernel.tile_tokens, kernel.packed_tokens) : kernel.tile_tokens;
}

std::int64_t Cut::most_tokens(Packing packing) const { return round_up(packing.x ? 512 : 256, token_unit(packing)); }

// By outer products packed x of 401 tokens and more takes half the memory of x, or less.
std::int64_t Cut::chunk(std::int64_t tokens, Packing packing) const {
  if (!multiplies_outer(packing)) {
    return std::min(tokens, most_chunk / token_unit(packing) * token_unit(packing));
  }
  const std::int64_t parts =
      std::max(ceil_div(tokens, most_tokens(packing)), std::int64_t{tokens > whole_packed ? 2 : 1});
  return std::min(tokens, round_up(ceil_div(tokens, parts), token_unit(packing)));
}

std::int64_t Cut::most_chunk_of(std::int64_t tokens, Packing packing) const {
  if (!multiplies_outer(packing)) return chunk(tokens, packing);
  return std::max(std::min(tokens, whole_packed), chunk(std::min(tokens, 2 * most_tokens(packing)), packing));
}

std::int64_t Cut::most_tokens_of(std::int64_t tokens) const {
  return std::min(tokens, std::max(most_tokens({packs_x(tokens), false}), most_tokens({false, true})));
}

std::int64_t Cut::most_sums_of(std::int64_t tokens) const {
  const std::int64_t some = most_tokens_of(tokens);
  const std::int64_t of_tiles =
      std::max(panel_rows(some), most_rows / 2) / multiplied_halves;  // half: with fewer tokens
  const std::int64_t rows = packs_x(tokens) ? std::max(of_tiles, kernel.outer.rows) : of_tiles;
  const std::int64_t streamed = std::min(some, kernel.streamed_tokens);
  const std::int64_t sums = std::max(rows * some, panel_rows(streamed) / multiplied_halves * streamed);
  return halves * round_up(std::min(sums, most_sums / halves), sums_granule);
}

std::int64_t Cut::most_scratch_of(std::int64_t tokens) const {
  const std::int64_t of_item = most_tokens_of(tokens);
  const std::int64_t of_tiles = kernel.scratch_for(widens(of_item), panel_rows(of_item));
  return packs_x(tokens) ? std::max(of_tiles, kernel.outer.scratch_bytes) : of_tiles;
}

bool Cut::widens(std::int64_t tokens) const {
  return kernel.widened_from > 0 && tokens >= kernel.widened_from && caches.second_level >= kernel.widened_cache;
}

// Where rows are read in streams they stay in no cache, and with more of them streams begin less often.
std::int64_t Cut::panel_rows(std::int64_t tokens) const {
  if (tokens <= kernel.streamed_tokens) return most_rows;
  const bool many_tokens = tokens > few_tokens;
  const bool large = caches.second_level >= large_second_level;
  if (widens(tokens)) return kernel.widened_rows * (many_tokens && large ? 2 : 1);
  const std::int64_t block = std::min(row_bytes, kernel.block_bytes);
  return many_tokens && block <= (large ? long_block : short_block) ? most_rows : most_rows / 2;
}

// As many tokens as an item may have, in blocks of equal size, and as many rows as their sums leave room for; less of
// either until every thread has several items.
Division Cut::divide(std::int64_t tokens, Packing packing) const {
  const std::int64_t some = std::max<std::int64_t>(tokens, 1);
  const std::int64_t rows = row_unit(packing);
  Division d;
  d.tokens = std::min(some, round_up(ceil_div(some, ceil_div(some, most_tokens(packing))), token_unit(packing)));
  d.rows = std::min(multiplies_outer(packing) ? kernel.outer.rows : panel_rows(d.tokens) / multiplied_halves,
                    most_sums / halves / d.tokens / rows * rows);
  const auto count = [&] {
    d.panels = ceil_div(columns, d.rows);
    d.blocks = ceil_div(tokens, d.tokens);
    return d.items();
  };
  while (count() < threads * items_a_thread) {
    if (d.rows <= enough_rows && d.tokens >= 16 * kernel.tile_tokens) {
      d.tokens = round_up(d.tokens / 2, token_unit(packing));
    } else if (d.rows > rows) {
      d.rows = round_up(d.rows / 2, rows);
    } else {
      break;
    }
  }
  return d;
}

}  // namespace gatefold::cpu
