#include "cuda/sm90/cost_model.hpp"

#include <algorithm>

#include "core/arithmetic.hpp"
#include "cuda/common/choice.hpp"
#include "cuda/sm90/geometry.hpp"

namespace gatefold::cuda::sm90 {
namespace {

constexpr int h200_multiprocessors = 132;  // Kernel::teraflops are of this many

// Of each strip of the weights, that a consumer has time for between its products.
constexpr int most_boxes_of_a_feeder = 2;
// What the second one adds to its arithmetic: 256x208 took 2.5 % longer with blocks of 16 rows, 256x224 with blocks of
// 32 up to 1 %.
constexpr double second_box_share = 0.01;

// Fitted as the figures below. More than the 4.8e12 that an H200 reads, since `exposed_fraction` of the arithmetic
// comes on top where memory is the bound; a card of this architecture with less shifts where arithmetic begins to
// matter.
constexpr double bytes_per_second = 4.89e12;

// That the busiest producer requests in a k-step: the one of the tokens or that of a strip of the weights.
int boxes_per_step(const Config& c, const Geometry& g) {
  return std::max(c.subtiles(), g.strip_boxes.count(c.strip_columns()));
}

// How much longer products take where consumers request more than a box of each strip.
double feeder_slowdown(const Config& c, const Geometry& g) {
  return c.has_producers() ? 1.0 : 1.0 + second_box_share * (g.strip_boxes.count(c.strip_columns()) - 1);
}

// Of the rows of the tiles' tokens, the share that is multiplied: slabs of 64 without a token are not. Blocks that
// share weights wait for the one with most slabs, which is the first: the rows of tiles after it have as many or fewer.
double multiplied_share(const Config& c, const Geometry& g) {
  if (c.swap_ab) return 1.0;
  if (c.cluster_m == 1) return ceil_div(g.tokens, 64) * 64.0 / (static_cast<double>(g.m_tiles) * c.tile_m);
  const int rows = g.m_tiles / c.cluster_m;
  const int pieces = ceil_div(g.longer_rows, c.cluster_m) * c.token_quantum();
  return (static_cast<double>(rows) * g.tile_tokens + pieces) / (static_cast<double>(rows) * c.tile_m);
}

// Of a tile's time, what slabs without tokens save on average: those that all rows of tiles lack, and those that the
// first has, which is the longest, and others lack.
double saved_share(const Config& c, const Geometry& g, const Figures& figures) {
  const double multiplied = multiplied_share(c, g);
  if (multiplied == 1.0) return 0.0;
  const double longest = ceil_div(g.tokens_of(c, 0), 64) * 64.0 / c.tile_m;
  const double of_some = c.tile_m > 128 ? figures.left_out_of_some : figures.left_out_of_two;
  return figures.left_out_of_all * (1.0 - longest) + of_some * (longest - multiplied);
}

// An epilogue that is gated by memory, in those of gate_up, to which the time of one is fitted: the activation is of
// twice as many columns for a tile's products, and exact. Fitted to results/h200/gemm_gated_tiles.json, together with
// those kernels' rates.
double epilogue_parts(const Config& c) {
  if (c.product != Product::gated_by_memory) return 1.0;
  return c.has_producers() ? 4.3 : 3.2;
}

// Sums in parts, of which each number is written by one kernel and read by a second. Fitted, with those kernels' rates,
// to an H200's times of the kernels that divide sums, on the down-projections of ten models with 16 to 512 tokens: the
// choice among these, sums in two parts among them, was within 3 % of the best in 91 of 110 cells, 1.4 % off on
// average. The rates of those for one row of tiles are such that, wherever several widths were tried in an mlp with 12
// to 72 tokens (43 cells of results/h200/down_parts_trial.json), the choice is within 1 % of the best; those of swap-AB
// tiles such that among all of gemm's kernels, alone, it is 0.5 % off in the mean of 80 cells of 136 to 512 tokens
// (results/h200/down_129_to_384_trial.json).
constexpr double seconds_per_part = 0.25e-6;
constexpr double sums_per_second = 2.2e12 / sizeof(float);

double seconds_of_adding(const Config& c, int parts, double sums) {
  return in_parts(c.product) ? parts * (seconds_per_part + sums / sums_per_second) : 0.0;
}

// Strips in ping-pong have the rates of plain tiles of as many tokens, one slot more, and a longer epilogue. Settled,
// they are the faster in 21 of 23 products of 2048 terms and more, one of which has 2048 (docs/kernels/sm90_log.md). In
// windows of 22 ms they are 3 % slower in the mean up to 2048 terms, and as fast beyond: hence not up to there. So
// little is gained that it decides between equals alone.
double seconds_gained_by_strips(const Config& c, double hidden_size, double arithmetic) {
  constexpr double least_hidden_size = 2560.0;
  constexpr double share = 1e-3;
  return c.may_narrow() && c.pingpong() && hidden_size >= least_hidden_size ? share * arithmetic : 0.0;
}

// What two blocks exchange of a gate_up tile, in tiles of 128 weight rows. Of gemm, to whose times the rates of its
// tiles were fitted with it, the whole.
double exchanged_share(const Config& c) { return c.product == Product::gate_up ? c.tile_n / 128.0 : 1.0; }

// Whether a kernel is for the problem: one that divides the sums into parts or adds them up may not be.
bool suits(const Config& c, const Problem& problem, std::int64_t tokens, int clusters) {
  if (c.adds_parts) return problem.batch_invariant;
  if (!in_parts(c.product)) return true;
  const std::int32_t parts = parts_of(c, problem, tokens, clusters);
  return parts > 1 && (!problem.batch_invariant || parts_stay_in_l2(problem, parts, tokens));
}

}  // namespace

// Fitted to an H200's times of every compiled kernel on 35 model shapes with 65 to 8192 tokens
// (results/h200/sm90_tiles.json before 4931843; fit_sm90_cost_model); how near the choice is now is in
// docs/kernels/sm90_choice.md. The rates of tiles for up to 128 tokens were fitted to these and to whole mlps. Only
// box_seconds is of elsewhere, and a bound: 12 boxes of a strip, which 128x192 brings of blocks of 8 rows, cost nothing
// in k-steps of 0.43 us.
constexpr Figures h200_figures{.fixed_seconds = 3e-6,
                               .cluster_seconds = 0.65e-6,
                               .exchange_seconds = 1.6e-6,
                               .exposed_epilogue_seconds = 1e-6,
                               .idle_fraction = 0.655,
                               .left_out_of_all = 0.86,
                               .left_out_of_some = 0.57,
                               .left_out_of_two = 0.27,
                               .subtile_round = 0.705,
                               .narrow_round = 0.65,
                               .narrow_together = 0.8,
                               .exposed_fraction = 0.255,
                               .most_of_average = 6.5,
                               .latency_seconds = 1.58e-6,
                               .idle_traffic = 0.32,
                               .box_seconds = 36e-9};

Machine machine_of(const DeviceProperties& device, std::span<const Kernel> kernels) {
  Machine machine{device.multiprocessors, bytes_per_second};
  const auto of_four = std::ranges::find(kernels, 4, [](const Kernel& kernel) { return kernel.config.cluster(); });
  if (of_four == kernels.end()) return machine;
  // All kernels fill a multiprocessor, so one tells for all.
  int clusters = 0;
  machine.clusters_of_four = of_four->resident_clusters(device, clusters).ok() ? clusters : 0;
  return machine;
}

Machine h200_machine(int clusters_of_four) { return {h200_multiprocessors, bytes_per_second, clusters_of_four}; }

bool fits_layout(const Config& config, const Problem& problem) {
  if (config.alternating) {
    const bool in_eights = !problem.layout.interleaved() || problem.layout.block == 8;
    return in_eights && (problem.layout.packed() || problem.ld_gate == problem.ld_up);
  }
  const StripBoxes boxes = strip_boxes(config, problem);
  return boxes.body_rows % 8 == 0 && boxes.edge_rows % 8 == 0;
}

bool fits(const Config& config, const Problem& problem) {
  if (!fits_layout(config, problem) || !sums_alike(config, problem)) return false;
  const int boxes = strip_boxes(config, problem).count(config.strip_columns());
  if (config.few_registers()) return boxes == 1;
  if (config.has_producers()) return true;
  return ceil_div(problem.hidden_size, config.tile_k()) >= config.stages && boxes <= most_boxes_of_a_feeder;
}

double estimated_seconds(const Kernel& kernel, const Problem& problem, std::int64_t tokens, const Machine& machine,
                         const Figures& figures) {
  const Config& c = kernel.config;
  const auto D = static_cast<double>(problem.hidden_size);
  const auto F = static_cast<double>(problem.intermediate_size);

  const int clusters = machine.clusters(c);
  const Geometry g = geometry_of(c, problem, tokens, clusters);
  const int tiles = g.cluster_tiles(c);
  const int whole_rounds = ceil_div(g.whole_tiles, clusters);
  const bool split = g.whole_tiles < tiles;
  const int rounds = whole_rounds + (split ? 1 : 0);  // a subtile brings all of its tile's weights
  const int narrow = g.narrow_cluster_tiles(c);
  const int narrow_rounds = rounds - ceil_div(tiles - narrow, clusters);
  const double narrow_round = c.pingpong() ? figures.narrow_round : figures.narrow_together;
  const double filled = (tiles - 0.5 * narrow) / clusters;
  const double long_rounds = whole_rounds + (split ? figures.subtile_round : 0.0) -
                             (c.may_narrow() ? (1.0 - narrow_round) * narrow_rounds : 0.0);
  const double effective = filled + figures.idle_fraction * (long_rounds - filled);
  const double left_out = saved_share(c, g, figures);
  const int parts = in_parts(c.product) && g.part_tiles > 0 ? g.n_tiles / g.part_tiles : 1;
  const double depth = D / (c.split_k * parts);  // of a block's sums
  const double tile_flops = 2.0 * c.tile_m * c.tile_n * depth * (1.0 - left_out);
  const double arithmetic =
      feeder_slowdown(c, g) * effective * tile_flops * h200_multiprocessors / (kernel.teraflops * 1e12);

  const double weights = (of_two_weights(c.product) ? 2.0 : 1.0) * F * D;
  const double outputs = c.product == Product::gated_by_memory ? 2.0 * F : F;  // the gate values come in
  const double bytes = 2.0 * (weights + static_cast<double>(tokens) * (D + outputs));
  // Blocks that multiply the same weights by different tokens read them from memory once.
  const double weights_of_one = rounds * 2.0 * c.tile_n * depth / g.m_tiles;
  // Of a single round that is not full.
  const double idle = 1.0 + (filled < 1.0 ? figures.idle_traffic * (1.0 / filled - 1.0) : 0.0);
  const double traffic = std::max(bytes * idle, weights_of_one * machine.multiprocessors / figures.most_of_average) /
                         machine.bytes_per_second;
  // One row of tiles brings its weights from memory, and of the slots all but one are on their way.
  const double arrivals = g.m_tiles == 1 ? rounds * g.k_steps * figures.latency_seconds / (c.stages - 1) : 0.0;
  const double copies = std::max(arrivals, rounds * g.k_steps * boxes_per_step(c, g) * figures.box_seconds);
  const double exchange = c.split_k > 1 ? figures.exchange_seconds * exchanged_share(c) : 0.0;
  const double epilogues =
      c.pingpong() ? 0.0 : rounds * (epilogue_parts(c) * figures.exposed_epilogue_seconds + exchange);
  const double fixed = figures.fixed_seconds + (c.cluster() > 1 ? figures.cluster_seconds : 0.0);
  return std::max({arithmetic, traffic, copies}) + figures.exposed_fraction * std::min(arithmetic, traffic) +
         epilogues + seconds_of_adding(c, parts, static_cast<double>(tokens * sums_of_a_token(c, problem))) + fixed -
         seconds_gained_by_strips(c, D, arithmetic);
}

const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                     const Machine& machine) {
  const auto fastest_of = [&](auto is_for) {
    return fastest(
        kernels,
        [&](const Kernel& kernel) {
          const Config& c = kernel.config;
          const int clusters = machine.clusters(c);
          if (clusters == 0 || !fits(c, problem)) return false;
          return kernels.size() == 1 ||
                 (is_for(c, tokens) && suits(c, problem, tokens, clusters));  // by request: all do
        },
        [&](const Kernel& kernel) { return estimated_seconds(kernel, problem, tokens, machine); });
  };
  const Kernel* meant = fastest_of(is_meant_for);
  return meant != nullptr ? meant : fastest_of(is_acceptable_for);  // of a layout that few kernels take
}

}  // namespace gatefold::cuda::sm90
