#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "cuda/sm80/cost_model.hpp"
#include "cuda/sm80/raster.hpp"
#include "cuda/sm80/shapes.hpp"
#include "cuda/sm80/weight_rows.hpp"
#include "kernel_grid.hpp"

// Which rows, tiles and kernel a run of sm_80's takes: arithmetic on the host.
namespace gatefold::cuda::sm80 {
namespace {

// --- weight rows ---

TEST(Sm80Choice, DivisionByMultiplication) {
  std::mt19937_64 random(20'261'121);
  const std::uint32_t edges[] = {1, 2, 3, 5, 7, 8, 24, 96, 1000, 14336, 65535, 65536, 65537, 0x40000001, 0x7fffffff};
  std::vector<std::uint32_t> divisors(std::begin(edges), std::end(edges));
  for (int i = 0; i < 200; ++i) divisors.push_back(1 + static_cast<std::uint32_t>(random() >> (33 + i % 31)));
  for (const std::uint32_t divisor : divisors) {
    const Divider divide(divisor);
    const auto expect = [&](std::uint64_t n) {
      if (n > 0x7fffffff) return;
      ASSERT_EQ(divide(static_cast<std::uint32_t>(n)), n / divisor) << n << " / " << divisor;
    };
    for (std::uint64_t multiple = 0; multiple <= 0x7fffffff;
         multiple += divisor * std::max<std::uint64_t>(1, (0x7fffffff / divisor) / 64)) {
      if (multiple > 0) expect(multiple - 1);
      expect(multiple);
      expect(multiple + 1);
    }
    expect(0x7fffffff);
  }
}

TEST(Sm80Choice, WeightRowsFollowTheLayout) {
  constexpr std::int64_t F = 96;
  for (const Layout layout :
       {Layout{LayoutKind::gate_up, 0}, Layout{LayoutKind::up_gate, 0}, Layout{LayoutKind::interleaved_gate_up, 1},
        Layout{LayoutKind::interleaved_up_gate, 8}, Layout{LayoutKind::interleaved_gate_up, 24}}) {
    for (const Half half : {Half::gate, Half::up}) {
      const LineMap map = layout.map(half, F);
      const WeightRows rows(nullptr, map, 128);
      for (std::int64_t j = 0; j < F; ++j) {
        EXPECT_EQ(map.first + rows.row(static_cast<std::uint32_t>(j)), map(j));
      }
    }
  }
}

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

constexpr Machine h200{132, 227 * 1024};
constexpr Machine a100{108, 163 * 1024};
constexpr Layout packed{LayoutKind::gate_up, 0};

Problem problem(Op op, std::int64_t D, std::int64_t F, const Layout& layout = packed) {
  Problem p;
  p.op = op;
  p.dtype = DType::bf16;
  if (op == Op::gate_up) p.layout = layout;
  p.hidden_size = D;
  p.intermediate_size = F;
  p.ld_x = p.ld_gate = p.ld_up = (D + 7) / 8 * 8;
  return p;
}

// Whether LineLoader's way to a weight row, a first one and equal steps, leads to the layout's, in every tile.
bool steps_are_even(const Config& c, const Layout& layout, std::int64_t F) {
  for (const Half half : {Half::gate, Half::up}) {
    const WeightRows rows(nullptr, layout.map(half, F), 1);
    for (std::int64_t tile = 0; tile < F; tile += c.out_columns()) {
      for (std::int64_t first = tile; first < tile + c.lines_per_pass(); ++first) {
        for (std::int64_t j = first, step = 0; j < std::min(F, tile + c.out_columns()); j += c.lines_per_pass()) {
          const std::int64_t reached =
              rows.row(static_cast<std::uint32_t>(first)) + step++ * rows.stride(c.lines_per_pass());
          if (reached != rows.row(static_cast<std::uint32_t>(j))) return false;
        }
      }
    }
  }
  return true;
}

TEST(Sm80Choice, LineLoaderTakesEvenDistances) {
  constexpr std::int64_t F = 3072;
  constexpr Config configs[] = {Large<Op::gate_up, DType::bf16>::config, Tall<Op::gate_up, DType::fp16>::config};
  for (const Config& config : configs) {
    for (const LayoutKind kind : {LayoutKind::separate, LayoutKind::gate_up, LayoutKind::up_gate}) {
      EXPECT_TRUE(fits_layout(config, problem(Op::gate_up, 64, F, {kind, 0}))) << to_string(kind);
      EXPECT_TRUE(steps_are_even(config, {kind, 0}, F)) << to_string(kind);
    }
    for (const std::int64_t block : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768}) {
      const Layout layout{LayoutKind::interleaved_up_gate, block};
      EXPECT_EQ(fits_layout(config, problem(Op::gate_up, 64, F, layout)), steps_are_even(config, layout, F))
          << config.tile_m << "x" << config.tile_n << ", blocks of " << block;
    }
  }
}

TEST(Sm80Choice, LineLoaderTakesWholeChunksAndShortRows) {
  constexpr Config large = Large<Op::gemm, DType::bf16>::config;
  EXPECT_TRUE(fits_layout(large, problem(Op::gemm, 72, 64)));
  EXPECT_FALSE(fits_layout(large, problem(Op::gemm, 76, 64)));
  EXPECT_TRUE(fits_layout(Small<Op::gemm, DType::bf16>::config, problem(Op::gemm, 76, 64)));
  constexpr std::int64_t longest = (std::int64_t{1} << 31) / 32 / 2 - 8;  // elements: 32 rows below 2^31 bytes
  for (const auto ld : {&Problem::ld_x, &Problem::ld_gate, &Problem::ld_up}) {
    Problem p = problem(Op::gate_up, 64, 64);
    p.*ld = longest;
    EXPECT_TRUE(fits_layout(Large<Op::gate_up, DType::bf16>::config, p));
    p.*ld = longest + 8;
    EXPECT_FALSE(fits_layout(Large<Op::gate_up, DType::bf16>::config, p));
    EXPECT_TRUE(fits_layout(LargeAnyOrder<DType::bf16>::config, p));
  }
  Problem gated = problem(Op::gemm_gated, 64, 64);
  gated.ld_gate = longest + 8;  // of the gate values, which the epilogue reads
  EXPECT_TRUE(fits_layout(Large<Op::gemm_gated, DType::bf16>::config, gated));
}

// The kernels that are compiled, at the rates of theirs.
const std::vector<Kernel> gate_up_kernels{{Tall<Op::gate_up, DType::bf16>::config, 462.0, nullptr},
                                          {Large<Op::gate_up, DType::bf16>::config, 431.0, nullptr},
                                          {LargeAnyOrder<DType::bf16>::config, 419.0, nullptr},
                                          {Small<Op::gate_up, DType::bf16>::config, 343.0, nullptr}};
const std::vector<Kernel> gemm_kernels{{Tall<Op::gemm, DType::bf16>::config, 456.0, nullptr},
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
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), 512), tall);
  EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 4096, 2 * 14336), 512), gemm_kernels[0].config);
  EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 8192, 2 * 28672), 512), gemm_kernels[0].config);
  for (const std::int64_t T : {2048, 8192, 65536}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), T), tall) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 8192, 28672), T), tall) << T;
    EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 4096, 2 * 14336), T), gemm_kernels[0].config) << T;
  }
}

TEST(Sm80Choice, AnyOrderWhereLinesAreUneven) {
  for (const std::int64_t T : {512, 8192}) {
    const Layout blocks_of_64{LayoutKind::interleaved_gate_up, 64};
    const Config any_order = LargeAnyOrder<DType::bf16>::config;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336, blocks_of_64), T), any_order) << T;
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4093, 14336), T), any_order) << T;
    EXPECT_EQ(chosen(gemm_kernels, problem(Op::gemm, 4093, 14336), T), gemm_kernels[2].config) << T;
  }
}

TEST(Sm80Choice, SmallTilesWhereLargeOnesAreTooFew) {
  EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 576, 1536), 128), gate_up_kernels[3].config);
}

TEST(Sm80Choice, OnlyWhatFitsTheMachine) {
  for (const std::int64_t T : {1, 512, 65536}) {
    EXPECT_EQ(chosen(gate_up_kernels, problem(Op::gate_up, 4096, 14336), T, a100), gate_up_kernels[3].config) << T;
  }
  EXPECT_EQ(choose(gate_up_kernels, problem(Op::gate_up, 64, 64), 1, {20, 48 * 1024}), nullptr);
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

// 132 tiles take one round, the 133rd another one, or of Tall half of one.
TEST(Sm80Choice, EstimatesCountRounds) {
  const Kernel& large = gate_up_kernels[1];
  const auto seconds = [&](std::int64_t D, std::int64_t F) {
    return estimated_seconds(large, problem(Op::gate_up, D, F), 128, h200);
  };
  EXPECT_DOUBLE_EQ(seconds(1024, 128 * 132), seconds(1024, 128));
  EXPECT_DOUBLE_EQ(seconds(1024, 128 * 132 + 1), 2 * seconds(1024, 128));
  EXPECT_DOUBLE_EQ(seconds(2048, 128), 2 * seconds(1024, 128));

  const Kernel& tall = gate_up_kernels[0];
  const auto tall_seconds = [&](std::int64_t tiles) {
    return estimated_seconds(tall, problem(Op::gate_up, 1024, 96 * tiles), 256, h200);
  };
  EXPECT_DOUBLE_EQ(tall_seconds(132), tall_seconds(67));
  EXPECT_LT(tall_seconds(66), 0.7 * tall_seconds(67));
  EXPECT_DOUBLE_EQ(tall_seconds(133), tall_seconds(132) + tall_seconds(1));
  EXPECT_DOUBLE_EQ(tall_seconds(132 + 67), 2 * tall_seconds(132));
}

TEST(Sm80Choice, ExplainsTheLoaderAndTheLoop) {
  EXPECT_EQ(to_string(Tall<Op::gate_up, DType::bf16>::config),
            "256x192 lines rolling, 64 of k, 3 stages, 4x2 warps, groups_of_eight");
  EXPECT_EQ(to_string(LargeAnyOrder<DType::bf16>::config), "128x256, 64 of k, 4 stages, 2x4 warps, groups_of_eight");
}

}  // namespace
}  // namespace gatefold::cuda::sm80
