#include "cuda/sm90/geometry.hpp"

#include <algorithm>
#include <numeric>

#include "core/arithmetic.hpp"
#include "cuda/common/legs.hpp"

namespace gatefold::cuda::sm90 {
namespace {

// Walking about this many tokens together keeps their rows in L2 while the weights pass by.
constexpr std::int32_t band_tokens = 2048;

// k-steps of a block's first tile whose weights begin their way to L2 while the kernel before ends. The copy engine is
// busy for some 70 ns with each of their boxes, and what it is requested then waits. Where one row of tiles reads all
// weights, from memory, eight gain up to 4 % over none; where several rows read the same ones, two gain as much as
// four, and eight lose 1 to 6 % (docs/kernels/sm90_log.md).
constexpr std::int32_t most_prefetched_steps(std::int32_t m_tiles) { return m_tiles == 1 ? 8 : 2; }

// Of more than 128 tokens two parts are left to two blocks of a cluster, which need no second kernel (divided.cuh): a
// block of Llama 1B with 512 tokens takes 92.7 us so and 95.1 in two parts, one of 8B with 160 tokens 125.9 and 128.0.
// Of fewer there is less to add up, and blocks of their own begin sooner than a cluster's.
constexpr std::int64_t least_parts(const Config& config) { return config.for_one_row() ? 2 : 3; }
constexpr std::int64_t least_parts_in_any_batch = 3;

// No device of this architecture has more.
constexpr std::int32_t most_multiprocessors = 132;

// Of a batch-invariant problem: shorter sums gain nothing by being divided.
constexpr std::int64_t least_steps_to_divide = 8;

// The bytes of parts that are left in L2, 50 MB, between the kernel that writes and the one that reads them.
constexpr std::int64_t largest_parts = std::int64_t{32} << 20;

// Parts that take k-steps by turns read longer pieces of a row at about the same time, 512 bytes where there are four:
// sums of 8192 to 17408 terms take 0.5 to 2 % less time. Those of 28672 and 36864 take 1 % more, and why is not known.
constexpr std::int64_t longest_sums_by_turns = 20480;

// Of a batch-invariant problem parts have the same terms in every kernel, and one that adds them up in registers has
// them in a row.
bool parts_by_turns(const Problem& problem) {
  return problem.hidden_size <= longest_sums_by_turns && !problem.batch_invariant;
}

std::int32_t tiles_of(std::int64_t size, int tile, int cluster) {
  return static_cast<std::int32_t>(ceil_div(ceil_div(size, tile), cluster) * cluster);
}

std::int64_t cluster_tiles_of_a_part(const Config& c, const Problem& problem, std::int64_t tokens) {
  return ceil_div(tokens, std::int64_t{c.tile_m} * c.cluster_m) *
         ceil_div(problem.intermediate_size, std::int64_t{c.columns()} * c.cluster_n);
}

// Into how many parts sums of so many k-steps are divided where there is room for so many: one where they would be
// fewer than `least`.
std::int32_t divided(std::int64_t steps, std::int64_t room, std::int64_t least) {
  const std::int64_t wanted = std::clamp<std::int64_t>(std::min(room, steps), 1, most_parts);
  const std::int64_t parts = ceil_div(steps, ceil_div(steps, wanted));  // none without a k-step
  return static_cast<std::int32_t>(parts < least ? 1 : parts);
}

// Of so many tokens the parts of the sums come to no more than largest_parts.
std::int64_t most_tokens_in_l2(const Problem& problem, std::int64_t parts) {
  const std::int64_t columns = std::max<std::int64_t>(problem.intermediate_size, 1);
  return largest_parts / (parts * columns * std::int64_t{sizeof(float)});
}

// Where all tokens are in one tile, they are divided evenly among its boxes.
std::int32_t x_box_rows(const Config& c, std::int64_t tokens, bool halved) {
  if (tokens > c.tile_m || halved) return c.box_rows();
  const std::int64_t boxes = c.tile_m / c.box_rows();
  return static_cast<std::int32_t>(ceil_div(tokens, 8 * boxes) * 8);
}

// Only rows with tokens are brought, in whole swizzle atoms of 8: a row that the copy engine has to fill with zeros
// takes it 4 to 5 ns, one of memory 1.3 or less (docs/kernels/sm90_log.md).
std::int32_t x_tail_rows(std::int64_t tokens, std::int32_t box_rows) {
  return static_cast<std::int32_t>(ceil_div(tokens % box_rows, 8) * 8);
}

// The same of the weights, a multiple of 8 too, and of an interleaved layout's block.
std::int32_t strip_tail_rows(const StripBoxes& boxes, std::int64_t columns, std::int32_t strip) {
  return boxes.edge_rows > 0 ? 0 : static_cast<std::int32_t>(columns % strip);
}

// Every cluster has as many whole tiles as any other. What is left over, if their subtiles are no more than the
// clusters, is a round of subtiles instead of a whole one.
std::int32_t whole_tiles(const Config& c, std::int64_t tokens, std::int32_t tiles, std::int32_t clusters) {
  const std::int32_t left = tiles % clusters;
  return c.subtiles() == 2 && tokens > c.tile_m / 2 && 2 * left <= clusters ? tiles - left : tiles;
}

// The tokens among the rows of tiles, as evenly as whole pieces allow: the first rows have a piece more than the
// others. What fits one tile stays together: a second block that shares its weights would receive all of them for half
// of the products.
void deal_out_tokens(const Config& c, Geometry& g) {
  if (g.m_tiles == 0) return;
  const std::int32_t rows = g.tokens <= c.tile_m ? 1 : g.m_tiles;
  const auto pieces = static_cast<std::int32_t>(ceil_div(std::int64_t{g.tokens}, c.token_quantum()));
  g.tile_tokens = pieces / rows * c.token_quantum();
  g.longer_rows = pieces % rows;
}

// Columns are dealt out in strips, as evenly as rounds allow. Where the strips that full rounds leave over are no more
// than the clusters, they are tiles of their own: half a round in place of a whole one. 28672 columns, 896 strips, 132
// blocks: three rounds of 132 tiles and 104 strips, 3.5 rounds and not 4.
//
// They come last in a band of tokens, and so last of all only if there is one.
void narrow_last_round(const Config& c, Geometry& g, std::int32_t clusters) {
  g.narrow_from = g.n_tiles;
  const std::int32_t rows = g.m_tiles / c.cluster_m;
  if (!c.may_narrow() || rows == 0 || rows > g.group_m) return;
  const auto strips = static_cast<std::int32_t>(ceil_div(ceil_div(g.columns, c.strip_columns()), c.cluster_n));
  const auto rounds_of = [&](std::int32_t tiles) {
    return static_cast<std::int32_t>(ceil_div(tiles * rows, clusters));
  };
  const std::int32_t rounds = rounds_of(g.n_tiles / c.cluster_n);
  std::int32_t least = 2 * rounds;  // half rounds
  for (std::int32_t full = rounds - 1; full >= std::max(rounds - 2, 0); --full) {
    const std::int32_t whole = std::min(full * clusters / rows, strips / 2);
    const std::int32_t tiles = strips - whole;  // the others are of one strip
    const std::int32_t halves = rounds_of(whole) + rounds_of(tiles);
    if (halves >= least) continue;
    least = halves;
    g.narrow_from = whole * c.cluster_n;
    g.n_tiles = tiles * c.cluster_n;
  }
}

// A cluster takes every so-many-th tile. Where the rows of tiles divide the clusters, it would always be of the same
// row, and those that have a long one would still be at work when the others are done. So each round begins a column
// at the next row.
//
//     clusters      c0 c1 c2 c3 ..        rows: two, of 256 and 192 tokens
//     round 0       r0 r1 r0 r1
//     round 1       r1 r0 r1 r0
std::int32_t turn_of(const Config& c, const Geometry& g, std::int32_t clusters) {
  const std::int32_t rows = g.m_tiles / c.cluster_m;
  if (c.swap_ab) return Geometry::never;  // a tile with fewer tokens takes as long
  return !g.rows_alike(c) && rows > 1 && rows <= g.group_m && clusters % rows == 0 ? clusters : Geometry::never;
}

}  // namespace

// Where neither the block divides the strip nor the strip the block, a tile may begin at any multiple of edge_rows
// within a block. Of its rows at most block - edge_rows then come before the first whole block, and at least so many
// whole blocks follow:
//
//     tile  |-- edges --|---- body: whole blocks ----|- edges -|
//     blocks ...........|........|........|..........|.........
StripBoxes strip_boxes(const Config& config, const Problem& problem) {
  const std::int32_t strip = config.strip_columns();
  if (!of_two_weights(config.product) || config.alternating || !problem.layout.interleaved()) return {strip, 0, 0};
  const std::int64_t block = problem.layout.block;
  if (strip % block == 0 || block % strip == 0) return {strip, 0, 0};
  const auto edge = static_cast<std::int32_t>(std::gcd<std::int64_t>(strip, block));
  const auto blocks = static_cast<std::int32_t>(block > strip ? 0 : (strip - block + edge) / block);
  return {blocks * static_cast<std::int32_t>(block), edge, blocks};
}

std::int64_t most_tokens(const Problem& problem) {
  const std::int64_t columns = problem.intermediate_size / 32 + 2;
  return std::min(largest_coordinate, largest_coordinate / columns * 64);
}

std::int32_t work_tiles_per_leg(const Config& config, const Geometry& g, std::int32_t clusters) {
  return cuda::work_tiles_per_leg(g.work_tiles(config), g.k_steps, clusters);
}

std::int32_t parts_of(const Config& config, const Problem& problem, std::int64_t tokens, std::int32_t clusters) {
  if (problem.batch_invariant) return parts_in_any_batch(problem);
  const std::int64_t tiles = cluster_tiles_of_a_part(config, problem, tokens);
  const std::int64_t steps = ceil_div(problem.hidden_size, config.tile_k());
  const std::int64_t room =
      std::min(clusters, most_multiprocessors / config.cluster()) / std::max<std::int64_t>(tiles, 1);
  return divided(steps, room, least_parts(config));
}

// Halves where tiles of 64 or of 128 columns are nearly half of the multiprocessors; none where those of 64 are three
// quarters of them or more; else parts of such tiles, two of a part side by side: three or more of 64 columns, or of
// 128.
std::int32_t parts_in_any_batch(const Problem& problem) {
  const std::int64_t steps = ceil_div(problem.hidden_size, std::int64_t{64});
  if (problem.op != Op::gemm || steps < least_steps_to_divide) return 1;
  constexpr std::int64_t multiprocessors = most_multiprocessors;
  const auto tiles_of = [&](std::int64_t columns) { return ceil_div(problem.intermediate_size, columns); };
  const auto nearly_half = [](std::int64_t tiles) {
    return 2 * tiles <= multiprocessors && 20 * tiles >= 9 * multiprocessors;
  };
  if (nearly_half(tiles_of(64)) || nearly_half(tiles_of(128))) return 2;
  if (4 * tiles_of(64) >= 3 * multiprocessors) return 1;
  for (const std::int64_t columns : {64, 128}) {
    const std::int64_t clusters = std::max<std::int64_t>(tiles_of(2 * columns), 1);
    const std::int32_t parts = divided(steps, multiprocessors / 2 / clusters, least_parts_in_any_batch);
    if (parts > 1) return parts;
  }
  return 2 * tiles_of(64) <= multiprocessors ? 2 : 1;
}

bool sums_alike(const Config& config, const Problem& problem) {
  if (!problem.batch_invariant) return true;
  const std::int32_t parts = parts_in_any_batch(problem);
  if (in_parts(config.product) || config.adds_parts) return parts > 1;
  return config.split_k == parts;
}

bool parts_stay_in_l2(const Problem& problem, std::int64_t parts, std::int64_t tokens) {
  return tokens <= most_tokens_in_l2(problem, parts);
}

std::int64_t sums_of_a_token(const Config& config, const Problem& problem) {
  return (of_two_weights(config.product) ? 2 : 1) * problem.intermediate_size;
}

std::size_t most_bytes_of_parts(const Config& config, const Problem& problem, std::int64_t max_tokens, bool by_name) {
  const std::int32_t clusters = most_multiprocessors / config.cluster();
  const auto bytes_of = [&](std::int64_t parts, std::int64_t tokens) {
    return static_cast<std::size_t>(parts * tokens * sums_of_a_token(config, problem)) * sizeof(float);
  };
  if (problem.batch_invariant) {
    const std::int32_t parts = parts_in_any_batch(problem);
    return bytes_of(parts, by_name ? max_tokens : std::min(max_tokens, most_tokens_in_l2(problem, parts)));
  }
  std::size_t most = by_name ? bytes_of(1, max_tokens) : 0;
  // All numbers of tokens that take as many rows of tiles have as many parts.
  const std::int64_t rows = std::int64_t{config.tile_m} * config.cluster_m;
  for (std::int64_t tokens = rows;; tokens += rows) {
    const std::int32_t parts = parts_of(config, problem, tokens, clusters);
    if (parts == 1) return most;
    most = std::max(most, bytes_of(parts, std::min(tokens, max_tokens)));
    if (tokens >= max_tokens) return most;
  }
}

Geometry geometry_of(const Config& config, const Problem& problem, std::int64_t tokens, std::int32_t clusters) {
  const std::int32_t parts = in_parts(config.product) ? parts_of(config, problem, tokens, clusters) : 1;
  Geometry g{};
  g.tokens = static_cast<std::int32_t>(tokens);
  g.columns = static_cast<std::int32_t>(problem.intermediate_size);
  g.k_steps = static_cast<std::int32_t>(ceil_div(problem.hidden_size, config.tile_k() * config.split_k * parts));
  const bool turns = parts_by_turns(problem);
  g.part_offset = turns ? 1 : g.k_steps;
  g.part_stride = turns ? parts : 1;
  g.part_steps = config.adds_parts ? ceil_div(g.k_steps, parts_in_any_batch(problem)) : g.k_steps;
  g.m_tiles = tiles_of(tokens, config.tile_m, config.cluster_m);
  deal_out_tokens(config, g);
  g.part_tiles = tiles_of(problem.intermediate_size, config.columns(), config.cluster_n);
  g.n_tiles = g.part_tiles * parts;
  g.group_m = band_tokens / (config.tile_m * config.cluster_m);
  narrow_last_round(config, g, clusters);
  g.whole_tiles = whole_tiles(config, tokens, g.cluster_tiles(config), clusters);
  g.x_box_rows = x_box_rows(config, tokens, g.whole_tiles < g.cluster_tiles(config));
  g.x_tail_rows = x_tail_rows(tokens, g.x_box_rows);
  g.turn = turn_of(config, g, clusters);
  g.strip_boxes = strip_boxes(config, problem);
  g.strip_tail_rows = strip_tail_rows(g.strip_boxes, problem.intermediate_size, config.strip_columns());
  g.block = static_cast<std::int32_t>(problem.layout.map(Half::gate, problem.intermediate_size).block);
  g.prefetched_steps = std::min(g.k_steps, most_prefetched_steps(g.m_tiles));
  g.leg_begin = 0;
  g.leg_end = g.work_tiles(config);
  return g;
}

}  // namespace gatefold::cuda::sm90
