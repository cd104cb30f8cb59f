#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda/kernel_grid.hpp"
#include "cuda/sm80/cost_model.hpp"
#include "cuda/sm80/division.hpp"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/shapes.hpp"
#include "sm80_problem.hpp"

// Which tiles and kernel a run of sm_80's takes: arithmetic on the host.
namespace gatefold::cuda::sm80 {
namespace {

// --- which tiles ---

TEST(Sm80Choice, RasterTakesEveryTileOnce) {
  for (const int tile_m : {128, 256}) {
    for (const std::int32_t tiles_m : {1, 2, 11, 12, 13, 25, 100}) {
      for (const std::int32_t tiles_n : {1, 3, 56}) {
        std::set<std::pair<int, int>> seen;
        for (std::int32_t i = 0; i < tiles_m * tiles_n; ++i) {
          const TileIndex tile = tile_index(i, tiles_m, tiles_n, raster_group(tiles_m, tile_m));
          EXPECT_TRUE(0 <= tile.m && tile.m < tiles_m && 0 <= tile.n && tile.n < tiles_n);
          EXPECT_TRUE(seen.emplace(tile.m, tile.n).second) << tile.m << ", " << tile.n;
        }
      }
    }
  }
}

TEST(Sm80Choice, RasterGroupsAreAlike) {
  for (const auto& [tile_m, most] : {std::pair{64, 12}, std::pair{128, 12}, std::pair{256, 10}}) {
    for (std::int64_t tiles_m = 1; tiles_m < 1000; ++tiles_m) {
      const std::int64_t group = raster_group(tiles_m, tile_m);
      EXPECT_LE(group, most);
      const std::int64_t groups = (tiles_m + group - 1) / group;
      EXPECT_EQ(groups, (tiles_m + most - 1) / most) << tiles_m << ": no more sweeps than it takes";
    }
  }
}

constexpr Machine h200{132, 227 * 1024, 90};
constexpr Machine a100{108, 163 * 1024, 80};
constexpr Machine b200{148, 227 * 1024, 100};
// The kernels that are compiled, at the rates of theirs.
const std::vector<Kernel> gate_up_kernels{{Tall<Op::gate_up, DType::bf16>::config, 484.0, nullptr},
                                          {Large<Op::gate_up, DType::bf16>::config, 431.0, nullptr},
                                          {LargeAnyOrder<DType::bf16>::config, 419.0, nullptr},
                                          {Small<Op::gate_up, DType::bf16>::config, 343.0, nullptr}};
const std::vector<Kernel> gemm_kernels{{Tall<Op::gemm, DType::bf16>::config, 475.0, nullptr},
                                       {Large<Op::gemm, DType::bf16>::config, 423.0, nullptr},
                                       {Small<Op::gemm, DType::bf16>::config, 345.0, nullptr}};

// --- how the output is divided ---

constexpr Config tall = Tall<Op::gate_up, DType::bf16>::config;
constexpr int cluster_columns = tall.cluster * tall.out_columns();

// Of each row of tiles the columns that are dealt out, from where to where.
std::map<std::int32_t, std::map<std::int32_t, std::int32_t>> columns_of(const Division& d) {
  std::map<std::int32_t, std::map<std::int32_t, std::int32_t>> rows;
  for (std::int32_t i = 0; i < d.work_tiles(); ++i) {
    for (std::int32_t rank = 0; rank < tall.cluster; ++rank) {
      const TileCoord tile = work_tile_coord(d, i, tall.out_columns(), tall.cluster, rank);
      const std::int32_t end = tile.column + tall.out_columns() / 3 * tile.thirds;
      EXPECT_TRUE(rows[tile.m].emplace(tile.column, end).second) << tile.m << ", " << tile.column << ": twice";
    }
  }
  return rows;
}

TEST(Sm80Choice, EveryColumnIsDealtOutOnce) {
  for (const std::int64_t T : {1, 256, 257, 2048, 5000}) {
    for (const std::int64_t F : {1, 96, 193, 3328, 14336, 28672}) {
      for (const std::int64_t resident : {1, 39, 66}) {
        const Division d = divide(tall, problem(Op::gate_up, 64, F), T, resident);
        const auto rows = columns_of(d);
        EXPECT_EQ(rows.size(), (T + 255) / 256);
        for (const auto& [m, tiles] : rows) {
          std::int32_t reached = 0;
          for (const auto& [from, to] : tiles) {
            EXPECT_EQ(from, reached) << T << " x " << F << " on " << resident << ", row " << m;
            reached = to;
          }
          EXPECT_GE(reached, F);
          EXPECT_LT(reached, F + cluster_columns) << "no cluster without columns";
        }
      }
    }
  }
}

// The longest way of a cluster through its shares, every resident-th, in thirds of a round.
std::int64_t thirds_of(const Division& d, std::int64_t resident) {
  std::vector<std::int64_t> work(static_cast<std::size_t>(resident));
  for (std::int32_t i = 0; i < d.work_tiles(); ++i) {
    work[static_cast<std::size_t>(i % resident)] += i < d.whole_tiles() ? 3 : d.thirds;
  }
  return *std::ranges::max_element(work);
}

// By one or two thirds of a round, if at all; and where all of what is left could be dealt out so, it is.
TEST(Sm80Choice, NarrowTilesShortenTheLastRound) {
  for (const std::int64_t resident : {1, 39, 66}) {
    for (const std::int64_t tiles_m : {1, 2, 4, 8, 33}) {
      for (std::int64_t tiles_n = 1; tiles_n <= 4 * resident; ++tiles_n) {
        const Problem p = problem(Op::gate_up, 64, cluster_columns * tiles_n);
        const Division d = divide(tall, p, 256 * tiles_m, resident);
        const std::int64_t tiles = tiles_m * tiles_n;
        const std::int64_t left = tiles % resident;
        const std::int64_t full = 3 * (tiles / resident);
        SCOPED_TRACE(testing::Message() << tiles_m << " x " << tiles_n << " on " << resident);
        EXPECT_LE(thirds_of(d, resident), left == 0 ? full : full + d.thirds);
        EXPECT_EQ(d.narrow_n > 0, d.thirds < 3);
        if (tiles_m > 1 || left == 0) continue;
        EXPECT_EQ(d.thirds, 3 * left <= resident ? 1 : (3 * left <= 2 * resident ? 2 : 3));
      }
    }
  }
}

// 4.55 rounds, and 2.27: docs/kernels/sm80.md.
TEST(Sm80Choice, LlamaEndsInNarrowTiles) {
  for (const auto& [D, F, T] : {std::tuple{8192, 28672, 512}, std::tuple{4096, 14336, 1024}}) {
    const Division d = divide(tall, problem(Op::gate_up, D, F), T, 66);
    EXPECT_EQ(d.whole_tiles(), 4 * 66);
    EXPECT_EQ(d.thirds, 2);
  }
  const Division d = divide(tall, problem(Op::gate_up, 4096, 14336), 512, 66);
  EXPECT_EQ(d.whole_tiles(), 2 * 66);
  EXPECT_EQ(d.thirds, 1);
}

TEST(Sm80Choice, NothingIsDividedIntoNothing) {
  EXPECT_EQ(divide(tall, problem(Op::gate_up, 64, 96), 0, 66).work_tiles(), 0);
  EXPECT_EQ(divide(tall, problem(Op::gate_up, 64, 0), 256, 66).work_tiles(), 0);
  EXPECT_NE(choose(gate_up_kernels, problem(Op::gate_up, 64, 96), 0, h200), nullptr);
}

TEST(Sm80Choice, OtherTilesAreWhole) {
  const Division d = divide(Large<Op::gate_up, DType::bf16>::config, problem(Op::gate_up, 64, 14336), 130, 132);
  EXPECT_EQ(d.tiles_m, 2);
  EXPECT_EQ(d.whole_n, 112);
  EXPECT_EQ(d.narrow_n, 0);
}

// --- which kernel ---

Config chosen(const std::vector<Kernel>& kernels, const Problem& p, std::int64_t T, const Machine& machine = h200) {
  return choose(kernels, p, T, machine)->config;
}

// What a benchmark found fastest, for Llama 8B and 70B.
TEST(Sm80Choice, TallTilesWhereTheyFillRounds) {
  constexpr Config large = Large<Op::gate_up, DType::bf16>::config;
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), 512), tall) << "2.27 rounds, as two and a half";
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 5120, 17408), 320), large) << "2.76 rounds, or two smaller";
  for (const std::int64_t T : {64, 128}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), T), large) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), T), large) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 5120, 17408), T), large) << T << ": 2.06 rounds, or 1.03";
  }
  for (const std::int64_t T : {320, 384, 640}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), T), large) << T;
  }
  for (const std::int64_t T : {192, 256, 768}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), T), tall) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 5120, 17408), T), tall) << T;
  }
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), 512), tall);
  EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 4096, 2 * 14336), 512), gemm_kernels[0].config);
  EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 8192, 2 * 28672), 512), gemm_kernels[0].config);
  for (const std::int64_t T : {2048, 8192, 65536}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), T), tall) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), T), tall) << T;
    EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 4096, 2 * 14336), T), gemm_kernels[0].config) << T;
  }
}

TEST(Sm80Choice, AnyOrderWhereLinesAndBoxesAreUneven) {
  for (const std::int64_t T : {512, 8192}) {
    const Layout blocks_of_64{LayoutKind::interleaved_gate_up, 64};
    const Config any_order = LargeAnyOrder<DType::bf16>::config;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336, blocks_of_64), T), any_order) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4093, 14336), T, b200), any_order) << T;
    EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 4093, 14336), T, b200), gemm_kernels[2].config) << T;
  }
}

// Fewer tiles than multiprocessors: SmolLM2-135M and an expert of DeepSeek-V3.
TEST(Sm80Choice, NarrowTilesWhereThereAreFew) {
  for (const std::int64_t T : {16, 128, 512}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 576, 1536), T), tall) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 7168, 2048), T), tall) << T;
  }
}

TEST(Sm80Choice, OnlyWhatFitsTheMachine) {
  for (const std::int64_t T : {1, 512, 65536}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), T, a100), gate_up_kernels[3].config) << T;
  }
  // 256x192 is compiled for 9.0 alone.
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), 65536), gate_up_kernels[0].config);
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), 65536, b200), gate_up_kernels[1].config);
  EXPECT_EQ(choose(gate_up_kernels, problem(Op::gate_up, 64, 64), 1, {20, 48 * 1024, 80}), nullptr);
}

// The tests on a GPU run each kernel on the grid.
TEST(Sm80Choice, GridHasWholeAndNarrowTiles) {
  for (const Config& config : {tall, Tall<Op::gemm, DType::bf16>::config}) {
    std::array<int, 4> ends{};  // by thirds
    int after_whole_ones = 0;
    for (const test::GridShape& shape : test::kernel_grid) {
      const Problem p = problem(config.op, shape.hidden_size, shape.intermediate_size);
      const Division d = division_on(h200, config, p, shape.tokens);
      ++ends[static_cast<std::size_t>(d.thirds)];
      if (d.whole_n > 0 && d.narrow_n > 0) ++after_whole_ones;
    }
    for (const int thirds : {1, 2, 3}) EXPECT_GT(ends[static_cast<std::size_t>(thirds)], 0) << thirds;
    EXPECT_GT(after_whole_ones, 0);
  }
}

TEST(Sm80Choice, BoxesOfAsManyTokensAsTheyCount) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 64, 192), most), tall);
  EXPECT_NE(chosen(gate_up_kernels, problem(Op::gate_up, 64, 192), most + 1), tall);
}

// 132 tiles take one round, the 133rd another one; of Tall 66 pairs, and a pair more a part of one.
TEST(Sm80Choice, EstimatesCountRounds) {
  const Kernel& large = gate_up_kernels[1];
  const auto seconds = [&](std::int64_t D, std::int64_t F) {
    return estimated_seconds(large, problem(Op::gate_up, D, F), 128, h200);
  };
  EXPECT_DOUBLE_EQ(seconds(1024, 128 * 132), seconds(1024, 128));
  EXPECT_DOUBLE_EQ(seconds(1024, 128 * 132 + 1), 2 * seconds(1024, 128));
  EXPECT_DOUBLE_EQ(seconds(2048, 128), 2 * seconds(1024, 128));

  const Kernel& pairs_of_tiles = gate_up_kernels[0];
  const auto tall_seconds = [&](std::int64_t pairs) {
    return estimated_seconds(pairs_of_tiles, problem(Op::gate_up, 1024, 192 * pairs), 256, h200);
  };
  EXPECT_DOUBLE_EQ(tall_seconds(66), tall_seconds(45));
  EXPECT_LT(tall_seconds(44), 0.8 * tall_seconds(45));
  EXPECT_LT(tall_seconds(22), 0.8 * tall_seconds(23));
  EXPECT_DOUBLE_EQ(tall_seconds(67), tall_seconds(66) + tall_seconds(1));
  EXPECT_DOUBLE_EQ(tall_seconds(66 + 45), 2 * tall_seconds(66));
}

TEST(Sm80Choice, ExplainsTheLoaderAndTheLoop) {
  EXPECT_EQ(to_string(Tall<Op::gate_up, DType::bf16>::config),
            "256x192 boxes rolling, 64 of k, 3 stages, 4x2 warps, groups_of_eight, clusters of 2");
  EXPECT_EQ(to_string(LargeAnyOrder<DType::bf16>::config), "128x256, 64 of k, 4 stages, 2x4 warps, groups_of_eight");
}

}  // namespace
}  // namespace gatefold::cuda::sm80
