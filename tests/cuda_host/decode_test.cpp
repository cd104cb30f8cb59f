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
// For each product and number of tokens there is a kernel for 8.0 and 9.0 and one for the devices of 8.6 and 8.9.
TEST(Decode, OneBlockFitsAMultiprocessor) {
  constexpr int of_the_system = 1024;
  struct Shared {
    int multiprocessor;
    int block;
  };
  constexpr Shared large = {164 * 1024, 163 * 1024};
  constexpr Shared small = {100 * 1024, 99 * 1024};
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    const Shared& device = c.stages > 1 ? large : small;
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
  bool operator==(const Tile&) const = default;
};

Tile chosen(const Problem& problem, std::int64_t tokens, const Machine& machine) {
  const Product product = problem.op == Op::gemm ? Product::gemm : Product::gate_up;
  const Kernel* kernel = choose(bf16_kernels(product), problem, tokens, machine);
  return kernel == nullptr ? Tile{} : Tile{kernel->config.rows(), kernel->config.tokens(), kernel->config.stages};
}

constexpr Machine h200{std::size_t{227} * 1024, 132};

// As measured (docs/kernels/decode_log.md).
TEST(Decode, ShortSumsTakeHigherTiles) {
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 6144), 8, h200), (Tile{32, 8, 2})) << "Qwen3 1.7B";
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 1, h200), (Tile{32, 8, 2})) << "Llama 3.2 1B";
  EXPECT_EQ(chosen(sm90::gated_problem(2560, 9728), 1, h200), (Tile{16, 8, 2})) << "Qwen3 4B";
  EXPECT_EQ(chosen(sm90::gated_problem(3072, 8192), 1, h200), (Tile{16, 8, 2})) << "Llama 3.2 3B";
  EXPECT_EQ(chosen(sm90::gated_problem(4096, 14336), 1, h200), (Tile{16, 8, 2})) << "Llama 3.1 8B";
  EXPECT_EQ(chosen(sm90::plain_problem(8192, 2048), 1, h200), (Tile{16, 8, 2})) << "Llama 3.2 1B";
}

// Each pass reads all weights: as few as can be, and in tiles of no more tokens than that takes.
TEST(Decode, TokensTakeAsFewPassesAsCanBe) {
  const Problem problem = sm90::gated_problem(4096, 14336);
  for (const auto& [tokens, columns] : {std::pair{8, 8}, {9, 16}, {16, 16}, {17, 32}, {32, 32}, {33, 32}, {500, 32}}) {
    EXPECT_EQ(chosen(problem, tokens, h200).tokens, columns) << tokens << " tokens";
  }
}

TEST(Decode, DevicesOfLittleSharedMemoryTakeASingleStage) {
  constexpr Machine small{std::size_t{99} * 1024, 84};
  for (const int tokens : {1, 9, 17}) EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), tokens, small).stages, 1);
  EXPECT_EQ(chosen(sm90::gated_problem(2048, 8192), 1, {std::size_t{16} * 1024, 84}), Tile{});
}

}  // namespace
}  // namespace gatefold::cuda::decode
