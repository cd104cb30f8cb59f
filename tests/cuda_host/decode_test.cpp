#include "cuda/decode/config.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "cuda/common/device.hpp"
#include "cuda/decode/kernels.hpp"

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

TEST(Decode, AsManyBlocksFitAsAreMeantTo) {
  constexpr int most_of_a_block = 227 * 1024;
  for (const Kernel& kernel : every_kernel()) {
    const Config& c = kernel.config;
    const int block = c.shared_bytes() + Config::reserved_bytes;
    EXPECT_LE(c.shared_bytes(), most_of_a_block) << c.rows() << "x" << c.tokens();
    EXPECT_LE(c.blocks * block, Config::multiprocessor_bytes) << c.rows() << "x" << c.tokens();
    EXPECT_GT((c.blocks + 1) * block, Config::multiprocessor_bytes) << c.rows() << "x" << c.tokens();
    EXPECT_LE(c.ring_bytes() + c.table_bytes() + c.sums_bytes(), c.shared_bytes());
  }
}

// 16-byte accesses are made by eight lanes at a time: they must meet the 32 banks once each.
TEST(Decode, LinesAreCopiedAndReadWithoutConflicts) {
  const auto bank = [](int row, int chunk) {
    return (row * Config::line_bytes + place_of_chunk(row, chunk) * 16) / 16 % 8;
  };
  for (int row = 0; row < 64; ++row) {
    std::set<int> banks;
    for (int chunk = 0; chunk < 8; ++chunk) banks.insert(bank(row, chunk));
    EXPECT_EQ(banks.size(), 8U) << "copied row " << row;
  }
  for (int first = 0; first < 64; first += 2) {  // lanes 4 g + q, of two neighbouring g
    for (int step = 0; step < Config::steps; ++step) {
      std::set<int> banks;
      for (int lane = 0; lane < 8; ++lane) banks.insert(bank(first + lane / 4, step * 4 + lane % 4));
      EXPECT_EQ(banks.size(), 8U) << "rows " << first << ", step " << step;
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

}  // namespace
}  // namespace gatefold::cuda::decode
