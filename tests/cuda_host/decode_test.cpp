#include "cuda/decode/config.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "cuda/common/device.hpp"
#include "cuda/decode/choice.hpp"
#include "cuda/decode/kernels.hpp"
#include "gated_problem.hpp"

// The sizes and places of the decode kernels: arithmetic on the host.
namespace gatefold::cuda::decode {
namespace {

std::vector<Kernel> every_kernel() {
  std::vector<Kernel> all;
  for (const Product product : {Product::gemm, Product::gate_up}) {
    for (const auto list : {bf16_kernels(product), fp16_kernels(product)})
      all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

// One block on a multiprocessor: where two found room, a launch's blocks would stand two on some and none on others.
// For each product and number of tokens there is a kernel for 8.0 and 9.0, and one for the devices of 8.6 and 8.9.
TEST(Decode, OneBlockFitsAMultiprocessor) {
  constexpr int of_the_system = 1024;
  struct Shared {
    int multiprocessor;
    int block;
  };
  constexpr Shared ampere = {164 * 1024, 163 * 1024};
  constexpr Shared small = {100 * 1024, 99 * 1024};
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    const Shared& device = c.stages > 1 ? ampere : small;
    EXPECT_LE(c.shared_bytes(), device.block) << c.rows() << "x" << c.tokens();
    EXPECT_GT(2 * (c.shared_bytes() + of_the_system), device.multiprocessor) << c.rows() << "x" << c.tokens();
  }
}

// The order of a sum's terms is that of a plan whose rows keep their bits in any batch: the same by every kernel.
TEST(Decode, EveryKernelAddsInTheSameOrder) {
  constexpr int depth = 5000;
  const auto terms_of = [&](const Config& c, int warp) {
    std::vector<int> terms;
    for (int at = Config::first_group(warp); at < depth; at = c.next_group(at)) {
      for (int k = at; k < std::min(at + c.group_elements(), depth); ++k) terms.push_back(k);
    }
    return terms;
  };
  const std::vector<Kernel> kernels = every_kernel();
  std::set<int> all;
  for (int warp = 0; warp < Config::warps; ++warp) {
    const std::vector<int> terms = terms_of(kernels.front().config, warp);
    all.insert(terms.begin(), terms.end());
    for (const Kernel& kernel : kernels) EXPECT_EQ(terms_of(kernel.config, warp), terms) << "warp " << warp;
  }
  EXPECT_EQ(all.size(), depth);
}

// 16-byte accesses are made by eight lanes at a time: they must meet the 32 banks once each.
TEST(Decode, LinesAreCopiedAndReadWithoutConflicts) {
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    const auto bank = [&](int row, int chunk) {
      return (row * c.line_bytes() + place_of_chunk(row, chunk) * 16) / 16 % 8;
    };
    for (int row = 0; row < c.rows(); ++row) {
      for (int first = 0; first < c.line_chunks(); first += 8) {
        std::set<int> banks;
        for (int chunk = first; chunk < first + 8; ++chunk) banks.insert(bank(row, chunk));
        EXPECT_EQ(banks.size(), 8U) << "copied row " << row;
      }
    }
    for (int first = 0; first < c.rows(); first += 2) {  // lanes 4 g + q, of two neighbouring g
      for (int step = 0; step < c.steps; ++step) {
        std::set<int> banks;
        for (int lane = 0; lane < 8; ++lane) banks.insert(bank(first + lane / 4, step * 4 + lane % 4));
        EXPECT_EQ(banks.size(), 8U) << "rows " << first << ", step " << step;
      }
    }
  }
}

TEST(Decode, SumsAreStoredWithoutConflicts) {
  for (const Kernel& kernel : every_kernel()) {
    std::set<int> banks;
    for (int lane = 0; lane < 32; ++lane) banks.insert((lane % 4 * 2 * kernel.config.sums_pitch() + lane / 4) % 32);
    EXPECT_EQ(banks.size(), 32U) << kernel.config.rows();
  }
}

// gate_up's tiles hold eight rows of gate and eight of up for the same columns, whatever the tile's height.
TEST(Decode, TilesHoldWholeGroupsOfColumns) {
  for (const Kernel& kernel : every_kernel()) {
    const int columns = tile_columns(kernel.product, kernel.config);
    EXPECT_EQ(columns * (kernel.product == Product::gate_up ? 2 : 1), kernel.config.rows());
    EXPECT_EQ(columns % 8, 0);
  }
}

TEST(Decode, KernelsComeInTheOrderOfTheirTokens) {
  for (const Product product : {Product::gemm, Product::gate_up}) {
    int before = 0;
    for (const Kernel& kernel : bf16_kernels(product)) {
      EXPECT_EQ(kernel.product, product);
      EXPECT_GE(kernel.config.tokens(), before);
      before = kernel.config.tokens();
    }
    EXPECT_EQ(before, 32);
  }
}

struct Tile {
  int rows;
  int tokens;
  int stages;
  int resident_elements;
  bool operator==(const Tile&) const = default;
};

// Of those that can run, as the family has them.
Tile chosen(const Problem& problem, std::int64_t tokens, const Machine& machine) {
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : bf16_kernels(problem.op == Op::gemm ? Product::gemm : Product::gate_up)) {
    if (kernel.config.takes(problem.hidden_size)) kernels.push_back(kernel);
  }
  const Kernel* kernel = choose(kernels, problem, tokens, machine);
  if (kernel == nullptr) return {};
  const Config& c = kernel->config;
  return {c.rows(), c.tokens(), c.stages, c.resident_elements()};
}

constexpr Machine h200{std::size_t{227} * 1024, 132};

// As measured (docs/kernels/decode_log.md).
TEST(Decode, KeepsXWhereABlockHasSeveralTiles) {
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 1, h200), (Tile{16, 8, 2, 2048})) << "Llama 3.2 1B";
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 9, h200), (Tile{32, 16, 2, 0})) << "Llama 3.2 1B";
  EXPECT_EQ(chosen(sm90::gated_problem(2304, 9216), 8, h200), (Tile{16, 8, 2, 4096})) << "Gemma 2 2B";
  EXPECT_EQ(chosen(sm90::gated_problem(2304, 9216), 9, h200), (Tile{32, 16, 2, 0})) << "Gemma 2 2B";
  EXPECT_EQ(chosen(sm90::gated_problem(4096, 14336), 1, h200), (Tile{16, 8, 2, 4096})) << "Llama 3.1 8B";
  EXPECT_EQ(chosen(sm90::gated_problem(8192, 28672), 1, h200), (Tile{16, 8, 2, 8192})) << "Llama 3.1 70B";
  EXPECT_EQ(chosen(sm90::gated_problem(16384, 53248), 1, h200), (Tile{16, 8, 2, 0})) << "Llama 3.1 405B";
  EXPECT_EQ(chosen(sm90::plain_problem(8192, 2048), 1, h200), (Tile{16, 8, 2, 0})) << "Llama 3.2 1B, a tile a block";
  EXPECT_EQ(chosen(sm90::plain_problem(2048, 7168), 1, h200), (Tile{16, 8, 2, 2048})) << "DeepSeek V3's expert";
}

// A warp has all of its runs in registers, at any depth that a kernel takes.
TEST(Decode, AWarpKeepsAllOfItsRuns) {
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    if (c.resident_runs == 0) continue;
    EXPECT_EQ(c.steps, Config::run_steps);
    for (int depth = 8; depth <= c.resident_elements(); depth += 8) {
      ASSERT_TRUE(c.takes(depth));
      for (int warp = 0; warp < Config::warps; ++warp) {
        int runs = 0;
        for (int at = Config::first_group(warp); at < depth; at = c.next_group(at)) ++runs;
        ASSERT_LE(runs, c.resident_runs) << "warp " << warp << ", depth " << depth;
      }
    }
    EXPECT_FALSE(c.takes(c.resident_elements() + 8));
  }
}

// Each pass reads all weights: as few as can be, and in tiles of no more tokens than that takes.
TEST(Decode, TokensTakeAsFewPassesAsCanBe) {
  const Problem problem = sm90::gated_problem(4096, 14336);
  for (const auto& [tokens, columns] : {std::pair{8, 8}, {9, 16}, {16, 16}, {17, 32}, {32, 32}, {33, 32}, {500, 32}}) {
    EXPECT_EQ(chosen(problem, tokens, h200).tokens, columns) << tokens << " tokens";
  }
}

TEST(Decode, DevicesOfLittleSharedMemoryTakeASingleStage) {
  constexpr Machine ampere{std::size_t{163} * 1024, 108};
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 8, ampere), (Tile{16, 8, 2, 2048}));
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 9, ampere), (Tile{32, 16, 2, 0}));
  constexpr Machine small{std::size_t{99} * 1024, 84};
  for (const int tokens : {1, 9, 17}) EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), tokens, small).stages, 1);
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 1, {std::size_t{16} * 1024, 84}), Tile{});
}

}  // namespace
}  // namespace gatefold::cuda::decode
