#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/arithmetic.hpp"
#include "cuda/implementations.hpp"
#include "cuda/kernel_grid.hpp"
#include "cuda/sm90_decode/kernels.hpp"
#include "gated_problem.hpp"

// The sizes, the places and the division of the kernels for few tokens on 9.0: arithmetic on the host.
namespace gatefold::cuda::sm90_decode {
namespace {

using sm90::gated_problem;
using sm90::plain_problem;

// Of an H100 or H200, whose 132 multiprocessors do not all belong to a cluster of four or eight.
constexpr ResidentClusters hopper{132, 66, 32, 15};

constexpr Product products[] = {Product::gemm, Product::gate_up};

std::vector<Kernel> every_kernel() {
  std::vector<Kernel> all;
  for (const Product product : products) {
    for (const auto list : {bf16_kernels(product), fp16_kernels(product)})
      all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

Problem problem_of(Product product, std::int64_t hidden_size, std::int64_t intermediate_size) {
  return product == Product::gemm ? plain_problem(hidden_size, intermediate_size)
                                  : gated_problem(hidden_size, intermediate_size);
}

TEST(Sm90Decode, FitsAMultiprocessorWithARingOfMany) {
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    SCOPED_TRACE(c.tokens);
    EXPECT_LE(c.shared_bytes(), Config::most_shared_bytes);
    EXPECT_GT(c.shared_bytes() + c.stage_bytes(), Config::most_shared_bytes) << "room for one more stage";
    EXPECT_GE(c.stages() * Config::rows * Config::tile_k * 2, 128 * 1024) << "weights under way";
    EXPECT_LE(2 * c.stages() * 8 + 16, Config::slack_bytes) << "barriers";
    EXPECT_EQ(c.tokens % 8, 0);
  }
}

// Each unit is added up by one block, which has a place for what every block sends it.
TEST(Sm90Decode, DivisionGivesEveryUnitToOneBlock) {
  for (const Kernel& kernel : every_kernel()) {
    for (const int split : splits) {
      const Division d{kernel.config.units(), split};
      SCOPED_TRACE(testing::Message() << kernel.config.tokens << " tokens by " << split);
      std::set<int> given;
      for (int block = 0; block < split; ++block) {
        EXPECT_LE(d.count(block), d.most());
        for (int unit = d.first(block); unit < d.first(block) + d.count(block); ++unit) {
          EXPECT_TRUE(given.insert(unit).second) << unit;
          EXPECT_EQ(d.block_of(unit), block) << unit;
        }
      }
      EXPECT_EQ(given.size(), static_cast<std::size_t>(d.units));
      EXPECT_LE(split * d.most(), kernel.config.mailbox_units());
    }
  }
}

// The blocks with most to do have little more than their part of all k-steps. (Of Llama 1B's down-projection, 16 tiles
// for 15 clusters of eight, they have twice that: half of the multiprocessors can still use up the memory.)
TEST(Sm90Decode, SplitsEvenlyForTheLlamaModels) {
  for (const auto& [D, F] : {std::pair{4096, 14336}, std::pair{8192, 28672}, std::pair{16384, 53248}}) {
    for (const Product product : products) {
      const Problem problem = product == Product::gemm ? plain_problem(F, D) : gated_problem(D, F);
      const Cut cut = cut_of(product, problem, hopper);
      const auto place = static_cast<std::size_t>(std::ranges::find(splits, cut.split) - splits.begin());
      const std::int64_t tiles = row_tiles(product, problem, cut.slab_rows);
      const std::int64_t most = ceil_div(tiles, hopper[place]) * ceil_div(k_steps(problem), cut.split);
      const double part = static_cast<double>(tiles * k_steps(problem)) / hopper[0];
      EXPECT_LE(static_cast<double>(most), 1.04 * part)
          << D << " x " << F << ", split " << cut.split << ", slabs of " << cut.slab_rows;
    }
  }
}

TEST(Sm90Decode, TakesNoSplitThatTheDeviceCannotHold) {
  const Problem down = plain_problem(14336, 4096);
  EXPECT_EQ(cut_of(Product::gemm, down, hopper).split, 4);
  EXPECT_EQ(cut_of(Product::gemm, down, {132, 66, 0, 0}).split, 2);
  EXPECT_EQ(cut_of(Product::gemm, down, {132, 0, 0, 0}).split, 1);
  EXPECT_EQ(cut_of(Product::gemm, down, {0, 0, 0, 0}).split, 0);
}

// Lower slabs fill the rounds of Llama 8B's gate_up, but only of whole blocks of the layout.
TEST(Sm90Decode, SlabsAreLowerWhereThatFillsTheRounds) {
  EXPECT_EQ(cut_of(Product::gate_up, gated_problem(4096, 14336), hopper).slab_rows, 56);
  EXPECT_EQ(cut_of(Product::gate_up, gated_problem(2048, 8192), hopper).slab_rows, 64);
  for (const std::int64_t block : {8, 64}) {
    const Problem problem = gated_problem(4096, 14336, {LayoutKind::interleaved_gate_up, block});
    EXPECT_EQ(cut_of(Product::gate_up, problem, hopper).slab_rows, block == 8 ? 56 : 64) << block;
  }
  EXPECT_EQ(row_tiles(Product::gate_up, gated_problem(4096, 14336), 56), 256);
  EXPECT_EQ(row_tiles(Product::gemm, plain_problem(14336, 4096), 56), 37);
}

TEST(Sm90Decode, GeometryCountsTheTilesOfRowsAndOfTokens) {
  Operands operands;
  operands.tokens = 65;
  const Cut cut{.split = 2, .slab_rows = 56};
  const Problem gated = gated_problem(4096, 14336, {LayoutKind::interleaved_gate_up, 8});
  const Geometry gate_up = geometry_of({.tokens = 32, .product = Product::gate_up}, gated, operands, cut);
  EXPECT_EQ(gate_up.token_tiles, 3);
  EXPECT_EQ(gate_up.tiles, 3 * 256);
  EXPECT_EQ(gate_up.k_steps, 32);
  EXPECT_EQ(gate_up.block, 8);
  const Geometry gemm =
      geometry_of({.tokens = 64, .product = Product::gemm}, plain_problem(14336, 4096), operands, cut);
  EXPECT_EQ(gemm.token_tiles, 2);
  EXPECT_EQ(gemm.tiles, 2 * 37);
  EXPECT_EQ(gemm.block, 4096) << "one half alone";
}

// A slab is one box of the copy engine.
TEST(Sm90Decode, TakesBlocksThatASlabHoldsOrIsAPartOf) {
  const auto reason = [](std::int64_t block) {
    Problem problem = gated_problem(64, 768, {LayoutKind::interleaved_gate_up, block});
    problem.ld_x = problem.ld_gate = problem.ld_up = problem.hidden_size;
    problem.ld_out = problem.intermediate_size;
    return sm90_decode_products()->supports(problem).reason;
  };
  for (const std::int64_t block : {1, 2, 4, 8, 16, 32, 64, 128, 192}) {
    EXPECT_EQ(reason(block).find("interleaved"), std::string::npos) << block;
  }
  for (const std::int64_t block : {3, 6, 12, 24, 48, 96}) {
    EXPECT_NE(reason(block).find("interleaved by " + std::to_string(block) + " rows"), std::string::npos) << block;
  }
}

// Where sm90 can take over it does so from 33 tokens on, of the largest weights from 49 on, and of gemm with a round of
// narrow tiles from 9 on.
TEST(Sm90Decode, IsWantedForFewTokens) {
  const auto most = [](Problem problem, std::int64_t ld_out) {
    problem.ld_x = problem.ld_gate = problem.ld_up = problem.hidden_size;
    problem.ld_out = ld_out;
    return sm90_decode_products()->supports(problem).max_tokens;
  };
  EXPECT_EQ(most(gated_problem(4096, 14336), 14336), 32);
  EXPECT_EQ(most(plain_problem(28672, 8192), 8192), 32);
  EXPECT_EQ(most(gated_problem(16384, 53248), 53248), 48);
  EXPECT_EQ(most(plain_problem(14336, 4096), 4096), 16);
  EXPECT_EQ(most(gated_problem(4096, 14340), 14344), 64) << "sm90 takes columns by eights";
  EXPECT_EQ(most(gated_problem(4096, 14336), 14340), 64) << "and stores rows of 16 bytes";
}

// What the tests on a GPU run cuts the tiles in every way, and divides their sums by each split.
TEST(Sm90Decode, TheShapesOfTheTestsCutItsTilesInEveryWay) {
  for (const Product product : products) {
    std::set<int> taken;
    std::set<int> heights;
    bool part_of_columns = false;
    bool several_tiles = false;
    std::vector<test::GridShape> shapes(std::begin(test::kernel_grid), std::end(test::kernel_grid));
    shapes.insert(shapes.end(), std::begin(test::few_tokens_grid), std::end(test::few_tokens_grid));
    for (const test::GridShape& shape : shapes) {
      const Problem problem = problem_of(product, shape.hidden_size, shape.intermediate_size);
      const Cut cut = cut_of(product, problem, hopper);
      taken.insert(cut.split);
      heights.insert(cut.slab_rows);
      part_of_columns |= shape.intermediate_size % tile_columns(product, cut.slab_rows) != 0;
      EXPECT_LE(cut.split, k_steps(problem)) << "a block would have no terms";
      several_tiles |= row_tiles(product, problem, cut.slab_rows) * ceil_div(shape.tokens, 64) > 132;
    }
    EXPECT_EQ(taken, std::set<int>(splits.begin(), splits.end()));
    EXPECT_EQ(heights, std::set<int>(slab_heights.begin(), slab_heights.end()));
    EXPECT_TRUE(part_of_columns);
    EXPECT_TRUE(several_tiles);
  }
}

}  // namespace
}  // namespace gatefold::cuda::sm90_decode
