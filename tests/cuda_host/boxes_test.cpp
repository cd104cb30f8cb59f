#include "cuda/sm90/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/arithmetic.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "gated_problem.hpp"
#include "some_configs.hpp"

// How tiles come in boxes of the copy engine, and which kernels take which layouts for it.
namespace gatefold::cuda::sm90 {
namespace {

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

}  // namespace
}  // namespace gatefold::cuda::sm90
