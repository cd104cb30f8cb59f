#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/arithmetic.hpp"
#include "cuda/implementations.hpp"
#include "cuda/kernel_grid.hpp"
#include "cuda/sm90_decode/choice.hpp"
#include "gated_problem.hpp"

// The sizes, the places and the division of the kernels for few tokens on 9.0: arithmetic on the host.
namespace gatefold::cuda::sm90_decode {
namespace {

using sm90::gated_problem;
using sm90::plain_problem;

// Of an H100 or H200, whose 132 multiprocessors do not all belong to a cluster of four or eight.
constexpr ResidentClusters hopper{132, 66, 32, 15};

constexpr Product products[] = {Product::gemm, Product::gate_up};
constexpr Config gemm{.product = Product::gemm};
constexpr Config low_gemm{.product = Product::gemm, .slab = 32};
constexpr Config gate_up{.product = Product::gate_up};

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

TEST(Sm90Decode, FitsAMultiprocessor) {
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    SCOPED_TRACE(testing::Message() << c.rows() << "x" << c.tokens);
    EXPECT_LE(c.shared_bytes(), Config::most_shared_bytes);
    EXPECT_EQ(c.rows() * c.tile_k() * Config::element_bytes, Config::step_bytes);
    EXPECT_EQ(c.wgmmas() * Config::wgmma_rows, c.rows());
    EXPECT_LE(2 * Config::stages * 8 + 16, Config::slack_bytes) << "barriers";
    EXPECT_EQ(c.tokens % 8, 0);
  }
}

// Each unit is added up by one block, which has a place for what every block sends it.
TEST(Sm90Decode, DivisionGivesEveryUnitToOneBlock) {
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    for (const int split : splits) {
      const Division d{c.units(), split};
      SCOPED_TRACE(testing::Message() << c.rows() << "x" << c.tokens << " by " << split);
      std::set<int> given;
      for (int block = 0; block < split; ++block) {
        EXPECT_LE(d.count(block), d.most());
        for (int unit = d.first(block); unit < d.first(block) + d.count(block); ++unit) {
          EXPECT_TRUE(given.insert(unit).second) << unit;
          EXPECT_EQ(d.block_of(unit), block) << unit;
        }
      }
      EXPECT_EQ(given.size(), static_cast<std::size_t>(d.units));
      EXPECT_LE(split * d.most(), c.mailbox_units());
    }
  }
}

double part_of_all_blocks(const Config& config, const Problem& problem) {
  const Cut cut = cut_of(config, problem, hopper);
  return static_cast<double>(row_tiles(config.product, problem, cut.slab_rows) * k_steps(config, problem)) / hopper[0];
}

std::int64_t most_steps(const Config& config, const Problem& problem) {
  const Cut cut = cut_of(config, problem, hopper);
  const auto place = static_cast<std::size_t>(std::ranges::find(splits, cut.split) - splits.begin());
  return ceil_div(row_tiles(config.product, problem, cut.slab_rows), hopper[place]) *
         ceil_div(k_steps(config, problem), cut.split);
}

// The blocks with most to do have little more than their part of all k-steps. (Of Llama 1B's down-projection, 16 tiles
// for 15 clusters of eight, they have twice that: half of the multiprocessors can still use up the memory.)
TEST(Sm90Decode, SplitsEvenlyForTheLlamaModels) {
  for (const auto& [D, F] : {std::pair{4096, 14336}, std::pair{8192, 28672}, std::pair{16384, 53248}}) {
    for (const Config& config : {gemm, gate_up}) {
      const Problem problem =
          problem_of(config.product, config.product == Product::gemm ? F : D, config.product == Product::gemm ? D : F);
      EXPECT_LE(static_cast<double>(most_steps(config, problem)), 1.04 * part_of_all_blocks(config, problem))
          << D << " x " << F << ", split " << cut_of(config, problem, hopper).split;
    }
  }
}

// An H100 holds 30 or 32 clusters of four blocks. Where it is 30, the 32 tiles of 128 rows that 4096 columns are take
// two rounds or three; tiles of 64 rows, divided by two, one that is full.
TEST(Sm90Decode, LowTilesOf4096ColumnsAreOneRound) {
  const Problem down = plain_problem(14336, 4096);
  constexpr ResidentClusters thirty{132, 66, 30, 15};
  EXPECT_EQ(cut_of(gemm, down, thirty).split, 8);
  EXPECT_EQ(cut_of(low_gemm, down, thirty).split, 2);
  EXPECT_EQ(cut_of(low_gemm, down, thirty).slab_rows, 32);
  EXPECT_LE(static_cast<double>(most_steps(low_gemm, down)), 1.04 * part_of_all_blocks(low_gemm, down));
}

TEST(Sm90Decode, TakesNoSplitThatTheDeviceCannotHold) {
  const Problem down = plain_problem(14336, 4096);
  EXPECT_EQ(cut_of(gemm, down, hopper).split, 4);
  EXPECT_EQ(cut_of(gemm, down, {132, 66, 0, 0}).split, 2);
  EXPECT_EQ(cut_of(gemm, down, {132, 0, 0, 0}).split, 1);
  EXPECT_EQ(cut_of(gemm, down, {0, 0, 0, 0}).split, 0);
}

// So few columns that whole slabs are 80 blocks in clusters of four: of Qwen3 4B's down-projection. More columns have
// no such low ones.
TEST(Sm90Decode, SlabsAreLowestForFewColumns) {
  constexpr ResidentClusters thirty{132, 66, 30, 15};
  const Cut few = cut_of(gemm, plain_problem(9728, 2560), thirty);
  EXPECT_EQ(few.slab_rows, 48);
  EXPECT_EQ(few.split, 4);
  for (const std::int64_t columns : {4096, 5120, 7168, 16384}) {
    EXPECT_GE(cut_of(gemm, plain_problem(27648, columns), thirty).slab_rows, 56) << columns;
  }
}

// All steps but a last one that ends within a line of 64 columns are requested as runs of their rows.
TEST(Sm90Decode, RunsAreOfWholeLines) {
  const auto run_steps = [](const Config& config, std::int64_t depth) {
    const Problem problem = problem_of(config.product, depth, 4096);
    const Geometry g = geometry_of(config, problem, Operands{.tokens = 8}, Cut{1, config.slab});
    return std::pair(g.run_steps, g.k_steps);
  };
  for (const Config& config : {gemm, gate_up}) {  // steps of 128 columns
    EXPECT_EQ(run_steps(config, 4096), std::pair(32, 32));
    EXPECT_EQ(run_steps(config, 64), std::pair(1, 1));
    EXPECT_EQ(run_steps(config, 576), std::pair(5, 5));
    EXPECT_EQ(run_steps(config, 584), std::pair(4, 5));
    EXPECT_EQ(run_steps(config, 72), std::pair(0, 1));
  }
  EXPECT_EQ(run_steps(low_gemm, 576), std::pair(3, 3));  // of 256
  EXPECT_EQ(run_steps(low_gemm, 584), std::pair(2, 3));
}

// Lower slabs fill the rounds of Llama 8B's gate_up, but only of whole blocks of the layout.
TEST(Sm90Decode, SlabsAreLowerWhereThatFillsTheRounds) {
  EXPECT_EQ(cut_of(gate_up, gated_problem(4096, 14336), hopper).slab_rows, 56);
  EXPECT_EQ(cut_of(gate_up, gated_problem(2048, 8192), hopper).slab_rows, 64);
  for (const std::int64_t block : {8, 64}) {
    const Problem problem = gated_problem(4096, 14336, {LayoutKind::interleaved_gate_up, block});
    EXPECT_EQ(cut_of(gate_up, problem, hopper).slab_rows, block == 8 ? 56 : 64) << block;
  }
  EXPECT_EQ(row_tiles(Product::gate_up, gated_problem(4096, 14336), 56), 256);
  EXPECT_EQ(row_tiles(Product::gemm, plain_problem(14336, 4096), 56), 37);
}

TEST(Sm90Decode, GeometryCountsTheTilesOfRowsAndOfTokens) {
  Operands operands;
  operands.tokens = 65;
  const Cut cut{.split = 2, .slab_rows = 56};
  const Problem gated = gated_problem(4096, 14336, {LayoutKind::interleaved_gate_up, 8});
  const Geometry of_gate_up = geometry_of({.tokens = 32, .product = Product::gate_up}, gated, operands, cut);
  EXPECT_EQ(of_gate_up.token_tiles, 3);
  EXPECT_EQ(of_gate_up.tiles, 3 * 256);
  EXPECT_EQ(of_gate_up.k_steps, 32);
  EXPECT_EQ(of_gate_up.block, 8);
  const Problem down = plain_problem(14336, 4096);
  const Geometry of_gemm = geometry_of({.tokens = 64, .product = Product::gemm}, down, operands, cut);
  EXPECT_EQ(of_gemm.token_tiles, 2);
  EXPECT_EQ(of_gemm.tiles, 2 * 37);
  EXPECT_EQ(of_gemm.block, 4096) << "one half alone";
  const Cut low_cut{.split = 2, .slab_rows = 32};
  const Geometry low = geometry_of({.tokens = 32, .product = Product::gemm, .slab = 32}, down, operands, low_cut);
  EXPECT_EQ(low.tiles, 3 * 64);
  EXPECT_EQ(low.k_steps, 56) << "of 512 bytes";
}

std::pair<int, int> chosen(const Problem& problem, std::int64_t tokens) {
  const Config& c =
      choose(bf16_kernels(problem.op == Op::gemm ? Product::gemm : Product::gate_up), problem, tokens).config;
  return {c.rows(), c.tokens};
}

// Each tile of tokens reads all weights again: as few as can be, padded no further than that takes.
TEST(Sm90Decode, TokensTakeAsFewTilesAsCanBe) {
  const Problem problem = gated_problem(4096, 14336);
  for (const auto& [tokens, columns] :
       {std::pair{1, 8}, {9, 16}, {16, 16}, {17, 24}, {25, 32}, {33, 48}, {49, 64}, {65, 48}, {97, 64}, {500, 64}}) {
    EXPECT_EQ(chosen(problem, tokens), (std::pair{128, columns})) << tokens << " tokens";
  }
}

TEST(Sm90Decode, LowTilesAreFor4096Columns) {
  const Problem down = plain_problem(14336, 4096);
  EXPECT_EQ(chosen(down, 13), (std::pair{64, 16}));
  EXPECT_EQ(chosen(down, 20), (std::pair{64, 24}));
  EXPECT_EQ(chosen(down, 32), (std::pair{64, 32}));
  EXPECT_EQ(chosen(down, 33), (std::pair{128, 48})) << "in one tile of tokens";
  EXPECT_EQ(chosen(plain_problem(28672, 8192), 16), (std::pair{128, 16}));
  EXPECT_EQ(chosen(plain_problem(8192, 3072), 16), (std::pair{128, 16}));
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

// Where sm90 can take over it does so from 9 or 33 tokens on, of the largest weights from 49 on.
TEST(Sm90Decode, IsWantedForFewTokens) {
  const auto most = [](Problem problem, std::int64_t ld_out) {
    problem.ld_x = problem.ld_gate = problem.ld_up = problem.hidden_size;
    problem.ld_out = ld_out;
    return sm90_decode_products()->supports(problem).max_tokens;
  };
  EXPECT_EQ(most(gated_problem(4096, 14336), 14336), 8);
  EXPECT_EQ(most(gated_problem(5120, 17408), 17408), 32);
  EXPECT_EQ(most(plain_problem(28672, 8192), 8192), 32);
  EXPECT_EQ(most(gated_problem(16384, 53248), 53248), 48);
  EXPECT_EQ(most(plain_problem(14336, 4096), 4096), 32);
  EXPECT_EQ(most(gated_problem(4096, 14340), 14344), 64) << "sm90 takes columns by eights";
  EXPECT_EQ(most(gated_problem(4096, 14336), 14340), 64) << "and stores rows of 16 bytes";
}

// What the tests on a GPU run cuts the tiles in every way, and divides their sums by each split.
TEST(Sm90Decode, TheShapesOfTheTestsCutItsTilesInEveryWay) {
  for (const Config& config : {gemm, low_gemm, gate_up}) {
    std::set<int> taken;
    std::set<int> heights;
    bool part_of_columns = false;
    bool several_tiles = false;
    std::vector<test::GridShape> shapes(std::begin(test::kernel_grid), std::end(test::kernel_grid));
    shapes.insert(shapes.end(), std::begin(test::few_tokens_grid), std::end(test::few_tokens_grid));
    for (const test::GridShape& shape : shapes) {
      const Problem problem = problem_of(config.product, shape.hidden_size, shape.intermediate_size);
      const Cut cut = cut_of(config, problem, hopper);
      taken.insert(cut.split);
      heights.insert(cut.slab_rows);
      part_of_columns |= shape.intermediate_size % tile_columns(config.product, cut.slab_rows) != 0;
      EXPECT_LE(cut.split, k_steps(config, problem)) << "a block would have no terms";
      several_tiles |= row_tiles(config.product, problem, cut.slab_rows) * ceil_div(shape.tokens, 64) > 132;
    }
    EXPECT_EQ(taken, std::set<int>(splits.begin(), splits.end()));
    const auto every_height = slab_heights(config.slab);
    EXPECT_EQ(heights, std::set<int>(every_height.begin(), every_height.end()));
    EXPECT_TRUE(part_of_columns);
    EXPECT_TRUE(several_tiles);
  }
}

}  // namespace
}  // namespace gatefold::cuda::sm90_decode
