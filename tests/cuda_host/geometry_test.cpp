#include "cuda/sm90/geometry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/arithmetic.hpp"
#include "gated_problem.hpp"
#include "some_configs.hpp"

// How a product is cut into tiles and halves of tiles: arithmetic on the host.
namespace gatefold::cuda::sm90 {
namespace {

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

}  // namespace
}  // namespace gatefold::cuda::sm90
