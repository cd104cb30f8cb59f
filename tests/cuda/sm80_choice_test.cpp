#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cuda/sm80/cost_model.hpp"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/shapes.hpp"
#include "kernel_grid.hpp"
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
          const TileCoord tile = tile_coord(i, tiles_m, tiles_n, raster_group(tiles_m, tile_m));
          EXPECT_TRUE(0 <= tile.m && tile.m < tiles_m && 0 <= tile.n && tile.n < tiles_n);
          EXPECT_TRUE(seen.emplace(tile.m, tile.n).second) << tile.m << ", " << tile.n;
        }
      }
    }
  }
}

// Whole, or both of its halves.
TEST(Sm80Choice, EveryTileIsDealtOutOnce) {
  constexpr std::int32_t blocks = 132;
  for (const std::int32_t tiles_m : {1, 2, 9}) {
    for (const std::int32_t tiles_n : {1, 33, 66, 67, 150}) {
      const std::int32_t tiles = tiles_m * tiles_n;
      const std::int32_t whole = whole_tiles(tiles, blocks);
      std::map<std::pair<int, int>, int> parts;  // 1: the first half, 2: the second
      for (std::int32_t i = 0; i < tiles + (tiles - whole); ++i) {
        const TileCoord share = share_coord(i, whole, tiles_m, tiles_n, raster_group(tiles_m, 256));
        const int part = share.half ? (share.second ? 2 : 1) : 3;
        EXPECT_EQ((parts[{share.m, share.n}] & part), 0) << share.m << ", " << share.n << ": twice";
        parts[{share.m, share.n}] |= part;
      }
      EXPECT_EQ(parts.size(), tiles);
      for (const auto& [coord, part] : parts) EXPECT_EQ(part, 3) << coord.first << ", " << coord.second;
    }
  }
}

TEST(Sm80Choice, HalvesFillTheLastRound) {
  for (const std::int64_t blocks : {1, 78, 132}) {
    for (std::int64_t tiles = 1; tiles <= 4 * blocks; ++tiles) {
      const std::int64_t whole = whole_tiles(tiles, blocks);
      const std::int64_t left = tiles % blocks;
      if (left > 0 && 2 * left <= blocks) {
        EXPECT_EQ(whole, tiles - left) << tiles << " tiles of " << blocks << " blocks";
      } else {
        EXPECT_EQ(whole, tiles) << tiles << " tiles of " << blocks << " blocks";
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

// --- which kernel ---

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

Config chosen(const std::vector<Kernel>& kernels, const Problem& p, std::int64_t T, const Machine& machine = h200) {
  return choose(kernels, p, T, machine)->config;
}

// What a benchmark found fastest, for Llama 8B and 70B.
TEST(Sm80Choice, TallTilesWhereTheyFillRounds) {
  constexpr Config tall = Tall<Op::gate_up, DType::bf16>::config;
  constexpr Config large = Large<Op::gate_up, DType::bf16>::config;
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), 512), tall) << "2.27 rounds, as two and a half";
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 5120, 17408), 320), large) << "2.76 rounds, or two smaller";
  for (const std::int64_t T : {64, 128}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), T), large) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), T), large) << T;
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

TEST(Sm80Choice, SmallTilesWhereLargeOnesAreTooFew) {
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 576, 1536), 128), gate_up_kernels[3].config);
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
TEST(Sm80Choice, GridHasWholeTilesAndHalves) {
  constexpr Config tall = Tall<Op::gate_up, DType::bf16>::config;
  std::array<int, 2> shapes{};  // whole, halves
  for (const test::GridShape& shape : test::kernel_grid) {
    const Problem p = problem(Op::gate_up, shape.hidden_size, shape.intermediate_size);
    ++shapes[ends_in_halves(tall, p, shape.tokens, h200) ? 1 : 0];
  }
  EXPECT_GT(shapes[0], 0);
  EXPECT_GT(shapes[1], 0);
}

// 132 tiles take one round, the 133rd another one; of Tall 66 pairs, and a pair more half of one.
TEST(Sm80Choice, EstimatesCountRounds) {
  const Kernel& large = gate_up_kernels[1];
  const auto seconds = [&](std::int64_t D, std::int64_t F) {
    return estimated_seconds(large, problem(Op::gate_up, D, F), 128, h200);
  };
  EXPECT_DOUBLE_EQ(seconds(1024, 128 * 132), seconds(1024, 128));
  EXPECT_DOUBLE_EQ(seconds(1024, 128 * 132 + 1), 2 * seconds(1024, 128));
  EXPECT_DOUBLE_EQ(seconds(2048, 128), 2 * seconds(1024, 128));

  const Kernel& tall = gate_up_kernels[0];
  const auto tall_seconds = [&](std::int64_t pairs) {
    return estimated_seconds(tall, problem(Op::gate_up, 1024, 192 * pairs), 256, h200);
  };
  EXPECT_DOUBLE_EQ(tall_seconds(66), tall_seconds(34));
  EXPECT_LT(tall_seconds(33), 0.7 * tall_seconds(34));
  EXPECT_DOUBLE_EQ(tall_seconds(67), tall_seconds(66) + tall_seconds(1));
  EXPECT_DOUBLE_EQ(tall_seconds(66 + 34), 2 * tall_seconds(66));
}

TEST(Sm80Choice, ExplainsTheLoaderAndTheLoop) {
  EXPECT_EQ(to_string(Tall<Op::gate_up, DType::bf16>::config),
            "256x192 boxes rolling, 64 of k, 3 stages, 4x2 warps, groups_of_eight, clusters of 2");
  EXPECT_EQ(to_string(LargeAnyOrder<DType::bf16>::config), "128x256, 64 of k, 4 stages, 2x4 warps, groups_of_eight");
}

}  // namespace
}  // namespace gatefold::cuda::sm80
