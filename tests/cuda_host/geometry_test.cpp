#include "cuda/sm90/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/arithmetic.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "gated_problem.hpp"

// How a product is cut into tiles, halves of tiles and boxes: arithmetic on the host.
namespace gatefold::cuda::sm90 {
namespace {

constexpr Product gate_up = Product::gate_up;
constexpr Config two_slabs{.tile_m = 256, .tile_n = 176, .stages = 3, .cluster_n = 2, .product = gate_up};
constexpr Config one_slab{.tile_m = 128, .tile_n = 224, .stages = 4, .cluster_m = 2, .product = gate_up};
constexpr Config pingpong{
    .tile_m = 128, .tile_n = 128, .stages = 5, .product = gate_up, .schedule = Schedule::pingpong};
constexpr Config swap_ab{
    .tile_m = 160, .tile_n = 256, .stages = 3, .cluster_n = 2, .product = gate_up, .swap_ab = true};
constexpr Config consumer_fed{
    .tile_m = 256, .tile_n = 224, .stages = 3, .cluster_n = 2, .product = gate_up, .feed = Feed::consumers};
constexpr Config split_sums{.tile_m = 128, .tile_n = 64, .stages = 8, .product = gate_up, .split_k = 2};
constexpr Config swap_ab_of_four(int tile_m, int stages) {
  Config c{.tile_m = tile_m, .tile_n = 128, .stages = stages, .cluster_n = 4, .product = gate_up, .swap_ab = true};
  c.schedule = Schedule::pingpong;
  return c;
}
constexpr Config of_four = swap_ab_of_four(96, 6);
constexpr Config two_of_four_bring = swap_ab_of_four(208, 4);
constexpr Config alternating{.tile_m = 104,
                             .tile_n = 192,
                             .stages = 5,
                             .cluster_m = 2,
                             .product = gate_up,
                             .schedule = Schedule::pingpong,
                             .swap_ab = true,
                             .alternating = true};
constexpr Config tokens_divided{.tile_m = 320,
                                .tile_n = 128,
                                .stages = 3,
                                .cluster_n = 2,
                                .product = gate_up,
                                .swap_ab = true,
                                .alternating = true,
                                .tokens_divided = true};
static_assert(tokens_divided.slabs() == 2 && tokens_divided.warpgroup_tokens() == 160 &&
              tokens_divided.accumulators() == 160 && tokens_divided.may_narrow());
constexpr Config all_configs[] = {two_slabs,  one_slab, pingpong,          swap_ab,     consumer_fed,
                                  split_sums, of_four,  two_of_four_bring, alternating, tokens_divided};
constexpr Config in_strips(int tile_m, int cluster_m, int cluster_n) {
  Config c = alternating;
  c.tile_m = tile_m;
  c.tile_n = 128;
  c.cluster_m = cluster_m;
  c.cluster_n = cluster_n;
  return c;
}
static_assert(in_strips(208, 1, 2).may_narrow() && !alternating.may_narrow() && !of_four.may_narrow());

TEST(Geometry, TilesCoverTheOutputInWholeClusters) {
  for (const Config& c : all_configs) {
    for (const std::int64_t T : {1, 64, 127, 128, 129, 256, 257, 1000, 65536}) {
      for (const std::int64_t F : {8, 88, 96, 112, 14336, 53248}) {
        const Geometry g = geometry_of(c, gated_problem(4096, F), T, 132 / c.cluster());
        EXPECT_EQ(g.m_tiles % c.cluster_m, 0);
        EXPECT_EQ(g.n_tiles % c.cluster_n, 0);
        EXPECT_GE(std::int64_t{g.m_tiles} * c.tile_m, T);
        EXPECT_LT(std::int64_t{g.m_tiles - c.cluster_m} * c.tile_m, T);
        EXPECT_GE(g.first_column(c, g.n_tiles), F);
        EXPECT_LT(g.first_column(c, g.n_tiles - c.cluster_n), F);
      }
    }
  }
}

// The rows of tiles follow each other without a gap, hold all tokens, none more than a tile does, and no box belongs to
// two of them. Those of several tiles differ by a piece at most.
TEST(Geometry, RowsOfTilesShareTheTokensEvenly) {
  for (const Config& c : all_configs) {
    for (std::int64_t T = 1; T <= 5 * c.tile_m + 1; ++T) {
      const Geometry g = geometry_of(c, gated_problem(4096, 14336), T, 132 / c.cluster());
      SCOPED_TRACE(testing::Message() << name(c) << ", " << T << " tokens");
      std::int64_t end = 0;
      std::int32_t least = c.tile_m;
      std::int32_t most = 0;
      for (int row = 0; row < g.m_tiles; ++row) {
        const std::int32_t tokens = std::max(g.tokens_of(c, row), 0);
        if (tokens > 0) {
          EXPECT_EQ(g.first_token(c, row), end);
        }
        end += tokens;
        least = std::min(least, tokens);
        most = std::max(most, tokens);
      }
      EXPECT_EQ(end, T);
      EXPECT_LE(most, c.tile_m);
      if (T <= c.tile_m) {
        EXPECT_EQ(most, T) << "one tile";
      } else {
        EXPECT_LT(most - least, 2 * c.token_quantum()) << "a piece, and what the last lacks";
        EXPECT_EQ(c.token_quantum() % g.x_box_rows, 0);
      }
    }
  }
}

// Only where rows differ, and a cluster would meet the same row in every round.
TEST(Geometry, RowsAreTakenInTurnWhereTheyDiffer) {
  constexpr int clusters = 66;
  const auto geometry = [](std::int64_t T) { return geometry_of(two_slabs, gated_problem(4096, 14336), T, clusters); };
  for (const std::int64_t T : {100, 256, 340, 384, 512, 768}) {
    EXPECT_TRUE(geometry(T).rows_alike(two_slabs)) << T;
    EXPECT_EQ(geometry(T).turn, Geometry::never) << T;
  }
  for (const std::int64_t T : {300, 448, 640, 1400}) {
    EXPECT_FALSE(geometry(T).rows_alike(two_slabs)) << T;
    EXPECT_EQ(geometry(T).turn, clusters) << T;
  }
  EXPECT_FALSE(geometry(1100).rows_alike(two_slabs));
  EXPECT_EQ(geometry(1100).turn, Geometry::never) << "five rows and 66 clusters: each meets all of them";
}

// The blocks' shares of the k-steps are all of them, and fewer than one each more.
// Tiles of both strips, then of one, follow each other without a gap, end with the columns, and take as few half rounds
// as any number of whole ones.
TEST(Geometry, NarrowTilesSaveHalfARound) {
  for (const Config& c : {in_strips(208, 1, 2), in_strips(80, 1, 1), in_strips(96, 2, 1)}) {
    for (const std::int64_t T : {1, 200, 208, 209, 416, 500, 2000, 5000}) {
      for (std::int64_t F = 8; F < 60000; F = F * 5 / 4 + 8) {
        for (const int clusters : {1, 7, 66, 132}) {
          const Geometry g = geometry_of(c, gated_problem(4096, F), T, clusters);
          SCOPED_TRACE(testing::Message() << name(c) << ", " << T << " tokens, " << F << " columns, " << clusters);
          EXPECT_EQ(g.narrow_from % c.cluster_n, 0);
          EXPECT_EQ(g.n_tiles % c.cluster_n, 0);
          EXPECT_EQ(g.first_column(c, 0), 0);
          for (int n = 0; n < g.n_tiles; ++n) {
            const int width = n < g.narrow_from ? c.columns() : c.strip_columns();
            ASSERT_EQ(g.first_column(c, n + 1), g.first_column(c, n) + width);
          }
          EXPECT_GE(g.first_column(c, g.n_tiles), F);
          EXPECT_LT(g.first_column(c, g.n_tiles - c.cluster_n), F);

          const int rows = g.m_tiles / c.cluster_m;
          const auto strips = static_cast<int>(ceil_div(ceil_div(F, c.strip_columns()), c.cluster_n));
          const auto half_rounds = [&](int whole, int tiles) {
            return ceil_div(whole * rows, clusters) + ceil_div(tiles * rows, clusters);
          };
          if (rows > g.group_m) {  // every band would end with narrow tiles
            EXPECT_EQ(g.narrow_from, g.n_tiles);
            continue;
          }
          const int all_whole = half_rounds((strips + 1) / 2, (strips + 1) / 2);
          int least = all_whole;
          for (int whole = 0; whole <= strips / 2; ++whole) least = std::min(least, half_rounds(whole, strips - whole));
          const int taken = half_rounds(g.narrow_from / c.cluster_n, g.n_tiles / c.cluster_n);
          EXPECT_LE(taken, all_whole);
          EXPECT_LE(taken, clusters < 66 ? least + 1 : least);  // one more of the hundreds that few clusters take
        }
      }
    }
  }
}

TEST(Geometry, NarrowTilesOfLlamas) {
  const auto tiles = [](std::int64_t F, std::int64_t T) {
    const Geometry g = geometry_of(in_strips(208, 1, 2), gated_problem(4096, F), T, 66);
    return std::pair(g.narrow_from, g.n_tiles);
  };
  EXPECT_EQ(tiles(28672, 200), std::pair(3 * 132, 3 * 132 + 104));
  EXPECT_EQ(tiles(53248, 200), std::pair(6 * 132, 6 * 132 + 80));
  EXPECT_EQ(tiles(14336, 200), std::pair(224, 224));  // 448 strips are 3.4 half rounds, two whole ones
  EXPECT_EQ(tiles(14336, 416), std::pair(198, 250));  // in two rows of tiles
  EXPECT_EQ(tiles(2880, 200), std::pair(0, 90));
}

TEST(Geometry, SharesOfASumCoverIt) {
  for (const std::int64_t D : {1, 64, 65, 2880, 7168}) {
    const std::int64_t columns =
        2L * split_sums.tile_k() * geometry_of(split_sums, gated_problem(D, 2048), 128, 66).k_steps;
    EXPECT_GE(columns, D);
    EXPECT_LT(columns, D + 2 * split_sums.tile_k());
  }
}

// The last round is split where that makes it half as long, and nowhere else.
TEST(Geometry, HalvesFillTheLastRound) {
  constexpr int clusters = 66;
  for (std::int64_t F = 88; F < 40000; F += 88) {
    const Geometry g = geometry_of(two_slabs, gated_problem(4096, F), 512, clusters);
    const int tiles = g.cluster_tiles(two_slabs);
    const int left = tiles % clusters;
    SCOPED_TRACE(testing::Message() << tiles << " tiles of " << clusters << " clusters");
    if (left == 0 || 2 * left > clusters) {
      EXPECT_EQ(g.whole_tiles, tiles);
      EXPECT_EQ(g.work_tiles(two_slabs), tiles);
    } else {
      EXPECT_EQ(g.whole_tiles, tiles - left);
      EXPECT_EQ(g.work_tiles(two_slabs), tiles + left);
      EXPECT_LE(g.work_tiles(two_slabs) - g.whole_tiles, clusters) << "two halves for one cluster are no gain";
    }
  }
}

// One slab of 64 tokens per warpgroup cannot be halved, and half a tile of x is half its boxes only where they are
// full.
TEST(Geometry, SomeTilesAreNeverSplit) {
  for (const std::int64_t F : {112, 1120, 14336, 14336 + 112}) {
    const Geometry g = geometry_of(one_slab, gated_problem(4096, F), 4096, 66);
    EXPECT_EQ(g.whole_tiles, g.cluster_tiles(one_slab)) << F;
  }
  for (const std::int64_t T : {1, 100, 128}) {
    const Geometry g = geometry_of(two_slabs, gated_problem(4096, 88), T, 66);
    EXPECT_EQ(g.whole_tiles, g.cluster_tiles(two_slabs)) << T << " tokens leave nothing for a second half";
  }
  for (const std::int64_t T : {129, 200, 256}) {
    const Geometry g = geometry_of(two_slabs, gated_problem(4096, 88), T, 66);
    EXPECT_EQ(g.whole_tiles, 0) << T;
    EXPECT_EQ(g.work_tiles(two_slabs), 2) << T;
  }
}

// A short leg would wait for its slowest block too often, a long one lets the blocks drift apart.
TEST(Geometry, LegsAreWholeRoundsNeitherShortNorLong) {
  constexpr int clusters = 66;
  for (const std::int64_t D : {64, 2048, 4096, 8192, 16384, 100000}) {
    for (const std::int64_t T : {1, 512, 1000, 8192, 65536, 1000000}) {
      const Geometry g = geometry_of(two_slabs, gated_problem(D, 14336), T, clusters);
      const std::int64_t work_tiles = g.work_tiles(two_slabs);
      const std::int64_t leg = work_tiles_per_leg(two_slabs, g, clusters);
      SCOPED_TRACE(testing::Message() << T << " tokens, " << work_tiles << " work tiles, " << g.k_steps << " k-steps");
      EXPECT_EQ(g.leg_begin, 0);
      EXPECT_EQ(g.leg_end, work_tiles);
      EXPECT_EQ(leg % clusters, 0);
      const std::int64_t rounds = (work_tiles + clusters - 1) / clusters;
      const std::int64_t rounds_of_leg = leg / clusters;
      if (rounds * g.k_steps < 2048) {
        EXPECT_EQ(rounds_of_leg, rounds) << "one launch";
      } else {
        const std::int64_t legs = (rounds + rounds_of_leg - 1) / rounds_of_leg;
        EXPECT_GE(rounds_of_leg * g.k_steps, 1024);
        EXPECT_LE(legs, 512) << "more than a stream should be given at once";
        if (rounds * g.k_steps < 512 * 1024) {
          EXPECT_LT((rounds_of_leg - 1) * g.k_steps, 2048);
        }
      }
    }
  }
}

// Of x: the boxes of the last row of tiles hold its tokens and fewer than a swizzle atom of 8 rows more.
TEST(Geometry, BoxesHoldTheTokensOfATile) {
  for (const std::int64_t F : {64, 14336}) {  // tiles for half of the clusters, whose halves are dealt out, and for all
    for (const Config& c : all_configs) {
      for (std::int64_t T = 1; T <= 3 * c.tile_m; ++T) {
        const Geometry g = geometry_of(c, gated_problem(4096, F), T, 132 / c.cluster());
        const std::int64_t tokens = std::max(g.tokens_of(c, g.m_tiles - 1), 0);
        const std::int64_t boxes = ceil_div(tokens, g.x_box_rows);
        const std::int64_t last = g.x_tail_rows > 0 ? g.x_tail_rows : g.x_box_rows;
        const std::int64_t rows = tokens == 0 ? 0 : (boxes - 1) * g.x_box_rows + last;
        SCOPED_TRACE(testing::Message() << name(c) << ", " << T << " tokens, " << F << " columns");
        EXPECT_LE(boxes, c.subtiles() * c.token_bringers());
        EXPECT_GE(rows, tokens);
        EXPECT_LT(rows, tokens + 8);
        EXPECT_EQ(g.x_box_rows % 8, 0);
        EXPECT_EQ(last % 8, 0);
        if (g.whole_tiles < g.cluster_tiles(c)) {
          EXPECT_EQ(c.tile_m / 2 % g.x_box_rows, 0) << "a half begins with a box";
        }
      }
    }
  }
}

// Where a last tile has fewer columns than the others, a box of its own brings them, or boxes of edges.
TEST(Geometry, TheLastColumnsHaveABox) {
  const auto tail = [](std::int64_t F, const Layout& layout) {
    return geometry_of(one_slab, gated_problem(4096, F, layout), 128, 132).strip_tail_rows;
  };
  const std::int64_t half = one_slab.tile_n / 2;
  EXPECT_EQ(tail(10 * half, {LayoutKind::gate_up, 0}), 0);
  EXPECT_EQ(tail(half - 8, {LayoutKind::gate_up, 0}), half - 8);
  EXPECT_EQ(tail(10 * half + 8, {LayoutKind::interleaved_gate_up, 8}), 8);
  EXPECT_EQ(tail(10 * half + 8, {LayoutKind::interleaved_gate_up, half + 8}), 0) << "edges";
}

// A strip of alternating rows has both halves of a fourth of the tile's rows, and comes in one box where the two lie
// one behind the other or in blocks of the eight rows that alternate.
TEST(Geometry, AlternatingRowsComeInOneBox) {
  static_assert(alternating.strip_rows() == 96 && alternating.strip_columns() == 48 && alternating.columns() == 96);
  const auto fits_in = [](const Layout& layout) {
    const Problem problem = gated_problem(4096, 11008, layout);
    const StripBoxes boxes = strip_boxes(alternating, problem);
    EXPECT_EQ((std::array{boxes.body_rows, boxes.edge_rows, boxes.count(48)}), (std::array{48, 0, 1}));
    return fits(alternating, problem);
  };
  EXPECT_TRUE(fits_in({LayoutKind::separate, 0}));
  EXPECT_TRUE(fits_in({LayoutKind::gate_up, 0}));
  EXPECT_TRUE(fits_in({LayoutKind::up_gate, 0}));
  EXPECT_TRUE(fits_in({LayoutKind::interleaved_gate_up, 8}));
  EXPECT_TRUE(fits_in({LayoutKind::interleaved_up_gate, 8}));
  for (const std::int64_t block : {1, 4, 16, 32, 48, 96}) {
    EXPECT_FALSE(fits_in({LayoutKind::interleaved_gate_up, block})) << block;
  }
  Problem apart = gated_problem(4096, 11008, {LayoutKind::separate, 0});
  apart.ld_up = apart.ld_gate + 8;
  EXPECT_FALSE(fits(alternating, apart)) << "rows of two lengths";
  const auto tail = [](std::int64_t F) {
    return geometry_of(alternating, gated_problem(4096, F), 128, 66).strip_tail_rows;
  };
  EXPECT_EQ(tail(11008), 16) << "115 tiles of 96, the last with 64 columns: a strip and 16";
  EXPECT_EQ(tail(12288), 0);
  EXPECT_EQ(tail(40), 40);
}

// What a box of `rows` rows brings, from row `first` of a half on, is rows of one block, or whole blocks.
bool cuts_no_block(std::int64_t first, std::int64_t rows, std::int64_t block) {
  const bool whole_blocks = first % block == 0 && rows % block == 0;
  const bool in_one = first / block == (first + rows - 1) / block;
  return whole_blocks || in_one;
}

// The boxes of the half that begins at row `first`: edges up to a block's beginning, the body, edges.
void expect_boxes_without_cuts(const StripBoxes& boxes, std::int64_t half, std::int64_t first, std::int64_t block) {
  std::int64_t body = boxes.body_rows;
  std::int64_t row = first;
  while (row < first + half) {
    const bool is_body = body > 0 && (boxes.edge_rows == 0 || row % block == 0);
    const std::int64_t rows = is_body ? body : boxes.edge_rows;
    ASSERT_GT(rows, 0);
    EXPECT_TRUE(cuts_no_block(row, rows, block)) << "rows " << row << " to " << row + rows;
    if (is_body) body = 0;
    row += rows;
  }
  EXPECT_EQ(row, first + half);
  EXPECT_EQ(body, 0) << "no place for the body";
}

TEST(Geometry, NoBoxCutsABlock) {
  for (int tile_n = 16; tile_n <= 256; tile_n += 16) {
    Config config = one_slab;
    config.tile_n = tile_n;
    const std::int32_t half = tile_n / 2;
    for (std::int64_t block = 1; block <= 600; ++block) {
      SCOPED_TRACE(testing::Message() << "blocks of " << block << " in halves of " << half);
      const StripBoxes boxes = strip_boxes(config, blocks_of(block));
      for (std::int64_t tile = 0; tile < block; ++tile) expect_boxes_without_cuts(boxes, half, tile * half, block);
      EXPECT_EQ(fits_layout(config, blocks_of(block)), boxes.body_rows % 8 == 0 && boxes.edge_rows % 8 == 0);
    }
    for (const Problem& p : {gated_problem(64, 72), gated_problem(64, 72, {LayoutKind::up_gate, 0})}) {
      EXPECT_EQ(strip_boxes(config, p).body_rows, half);
      EXPECT_EQ(strip_boxes(config, p).edge_rows, 0);
    }
  }
}

TEST(Geometry, FewBoxesForBlocksThatTilesCut) {
  const auto boxes_of = [](int tile_n, std::int64_t block) {
    Config config = one_slab;
    config.tile_n = tile_n;
    const StripBoxes b = strip_boxes(config, blocks_of(block));
    return std::array{b.body_rows, b.edge_rows, b.count(tile_n / 2)};
  };
  EXPECT_EQ(boxes_of(192, 32), (std::array{96, 0, 1}));
  EXPECT_EQ(boxes_of(224, 32), (std::array{96, 16, 2}));
  EXPECT_EQ(boxes_of(176, 16), (std::array{80, 8, 2}));
  EXPECT_EQ(boxes_of(176, 32), (std::array{64, 8, 4}));
  EXPECT_EQ(boxes_of(192, 64), (std::array{64, 32, 2}));
  EXPECT_EQ(boxes_of(176, 64), (std::array{0, 8, 11})) << "a block of 64 need not lie in 88 rows as a whole";
}

// A consumer that requests k-steps ahead looks into the next tile, no further.
TEST(CompiledKernels, NeedNoThirdTileAtOnce) {
  for (const auto& [hidden_size, fit] :
       {std::pair{1, false}, std::pair{128, false}, std::pair{129, true}, std::pair{4096, true}}) {
    EXPECT_EQ(fits(consumer_fed, gated_problem(hidden_size, 14336)), fit) << hidden_size;
    EXPECT_TRUE(fits(two_slabs, gated_problem(hidden_size, 14336))) << hidden_size;
    const Kernel* taken =
        choose(kernels(DType::bf16, Product::gate_up), gated_problem(hidden_size, 14336), 512, {132, 4.3e12});
    ASSERT_NE(taken, nullptr);
    EXPECT_TRUE(fit || taken->config.has_producers()) << hidden_size;
  }
}

// Producers with few registers request a half in one box: 64 rows take blocks of 32 and 64, and cut those of 24.
TEST(CompiledKernels, AskForOneBoxWithFewRegisters) {
  constexpr Config few = two_of_four_bring;
  constexpr Config enough = swap_ab_of_four(192, 4);
  static_assert(few.few_registers() && !enough.few_registers());
  for (const auto& [block, fit] : {std::pair{1, true}, std::pair{32, true}, std::pair{64, true}, std::pair{128, true},
                                   std::pair{24, false}, std::pair{96, false}}) {
    EXPECT_EQ(fits(few, blocks_of(block)), fit) << block;
    EXPECT_TRUE(fits(enough, blocks_of(block))) << block;
  }
}

// A consumer has the time of a product to request a k-step: two boxes for each half of the weights, no more.
TEST(CompiledKernels, AskForFewBoxesWithoutProducers) {
  constexpr Config halves_of_104{
      .tile_m = 256, .tile_n = 208, .stages = 3, .cluster_n = 2, .product = gate_up, .feed = Feed::consumers};
  for (const auto& [block, fit, fits_104] :
       {std::tuple{1, true, true}, std::tuple{8, true, true}, std::tuple{16, true, true}, std::tuple{32, true, false},
        std::tuple{64, false, false}, std::tuple{112, true, false}}) {
    EXPECT_EQ(fits(consumer_fed, blocks_of(block)), fit) << block;
    EXPECT_EQ(fits(halves_of_104, blocks_of(block)), fits_104) << block;
    for (std::int64_t tokens = 65; tokens <= 65536; tokens = tokens * 3 / 2) {
      const Kernel* taken = choose(kernels(DType::bf16, Product::gate_up), blocks_of(block), tokens, {132, 4.3e12});
      ASSERT_NE(taken, nullptr);
      const StripBoxes boxes = strip_boxes(taken->config, blocks_of(block));
      EXPECT_TRUE(taken->config.has_producers() || boxes.count(taken->config.tile_n / 2) <= 2)
          << name(taken->config) << ", " << block;
    }
  }
}

// With as many tokens as there may be, every kernel's tiles, shares and tokens are counted in 31 bits.
TEST(MostTokens, AreCountedByEveryKernel) {
  for (const std::int64_t columns : {8, 64, 4096, 53248, 1 << 20}) {
    const Problem problem = gated_problem(64, columns);
    const std::int64_t tokens = most_tokens(problem);
    EXPECT_LT(tokens, std::int64_t{1} << 31);
    for (const Product product : {Product::plain, Product::gate_up, Product::gated_by_memory, Product::parts}) {
      for (const Kernel& kernel : kernels(DType::bf16, product)) {
        const Config& c = kernel.config;
        const std::int64_t tiles =
            ceil_div(tokens, c.tile_m * c.cluster_m) * ceil_div(columns, std::int64_t{c.columns()} * c.cluster_n);
        EXPECT_LT(tiles * c.tiles_per_cluster(), std::int64_t{1} << 31) << name(c) << ", " << columns << " columns";
      }
    }
  }
}

// Products of which kernels in parts take some numbers of tokens undivided, some in two parts, some in eight.
const Problem divided_problems[] = {plain_problem(8192, 2048), plain_problem(14336, 4096), plain_problem(200, 1032),
                                    plain_problem(9728, 2560), plain_problem(4104, 72),    plain_problem(64, 20000)};

TEST(Parts, AreOneRoundAndEachHasSums) {
  for (const Problem& problem : divided_problems) {
    for (const Kernel& kernel : kernels(DType::bf16, Product::parts)) {
      const Config& c = kernel.config;
      for (const std::int32_t multiprocessors : {132, 114, 78}) {
        const std::int32_t clusters = multiprocessors / c.cluster();
        for (std::int64_t tokens = 1; tokens <= 1500; tokens += tokens % 64 == 0 ? 1 : 21) {
          SCOPED_TRACE(testing::Message() << name(c) << ", " << tokens << " tokens, " << problem.hidden_size << " x "
                                          << problem.intermediate_size << ", " << clusters << " clusters");
          const Geometry g = geometry_of(c, problem, tokens, clusters);
          const std::int32_t parts = parts_of(c, problem, tokens, clusters);
          ASSERT_GE(parts, 1);
          ASSERT_LE(parts, most_parts);
          ASSERT_EQ(g.n_tiles, parts * g.part_tiles);
          EXPECT_EQ(g.part_tiles % c.cluster_n, 0);
          EXPECT_GE(std::int64_t{g.part_tiles} * c.columns(), problem.intermediate_size);
          if (parts > 1) {
            EXPECT_LE(g.work_tiles(c), clusters);
          }
          // All of the sums, and of the last part some.
          const std::int64_t steps = ceil_div(problem.hidden_size, c.tile_k());
          EXPECT_GE(std::int64_t{parts} * g.k_steps, steps);
          EXPECT_LT(std::int64_t{parts - 1} * g.k_steps, steps);
        }
      }
    }
  }
}

// What a run writes to the workspace lies in it, on every device; more tokens never ask for less.
TEST(Parts, LieInTheWorkspace) {
  for (const Problem& problem : divided_problems) {
    for (const Kernel& kernel : kernels(DType::bf16, Product::parts)) {
      const Config& c = kernel.config;
      std::size_t before = 0;
      for (std::int64_t tokens = 1; tokens <= 1500; tokens += tokens % 64 == 0 ? 1 : 21) {
        SCOPED_TRACE(testing::Message() << name(c) << ", " << tokens << " tokens, " << problem.hidden_size << " x "
                                        << problem.intermediate_size);
        const std::size_t chosen = most_bytes_of_parts(c, problem, tokens, false);
        const std::size_t by_request = most_bytes_of_parts(c, problem, tokens, true);
        EXPECT_GE(chosen, before);
        before = chosen;
        for (const std::int32_t multiprocessors : {200, 132, 114, 78}) {
          const std::int32_t parts = parts_of(c, problem, tokens, multiprocessors / c.cluster());
          const std::size_t bytes =
              static_cast<std::size_t>(parts * tokens * problem.intermediate_size) * sizeof(float);
          EXPECT_LE(bytes, by_request);
          if (parts > 1) {
            EXPECT_LE(bytes, chosen);
          }
        }
        // A tile's sums of each multiprocessor, at most.
        EXPECT_LE(chosen, std::size_t{132} * c.tile_m * c.tile_n * sizeof(float));
      }
    }
  }
}

// The copy engine's strides have 40 bits: what is longer is another kernel's, even of one row.
TEST(LongRows, AreLeftToOthers) {
  Problem problem = plain_problem(64, 64);
  problem.ld_x = problem.ld_up = problem.ld_out = 64;
  problem.ld_x = std::int64_t{1} << 39;
  EXPECT_EQ(sm90_products()->supports(problem).reason, "ld_x: 549755813888 elements exceed 2^40 bytes");
  problem.ld_x = 64;
  problem.ld_out = std::int64_t{1} << 40;
  EXPECT_EQ(sm90_products()->supports(problem).reason, "ld_out: 1099511627776 elements exceed 2^40 bytes");
}

}  // namespace
}  // namespace gatefold::cuda::sm90
