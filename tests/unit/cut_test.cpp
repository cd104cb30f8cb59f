#include "cpu/loops/cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

// How a run's output is cut into items: whatever is cut, an item fits what the workspace holds for it.
namespace gatefold::cpu {
namespace {

constexpr std::int64_t mib = 1048576;

// As the loops' kernels: so many rows of a panel whose weights are widened, to so many bytes each, in such a cache;
// 0 rows: none are.
constexpr Kernel kernel_of(std::int64_t tile_tokens, std::int64_t block_bytes, std::int64_t widened_rows,
                           std::int64_t row_bytes, std::int64_t widened_cache) {
  Kernel kernel{.name = "",
                .dtype = DType::fp16,
                .tile_rows = 4,
                .tile_tokens = tile_tokens,
                .scratch_bytes = 24960,
                .multiply = nullptr,
                .block_bytes = block_bytes};
  kernel.widened_from = widened_rows > 0 ? 48 : 0;
  kernel.widened_cache = widened_cache;
  kernel.widened_rows = widened_rows;
  kernel.widened_row_bytes = row_bytes;
  return kernel;
}
constexpr Kernel avx512_fp16 = kernel_of(6, 2048, 64, 4160, 2 * mib);
constexpr Kernel avx2_bf16 = kernel_of(2, 4096, 32, 8256, 2 * mib);
constexpr Kernel portable_bf16 = kernel_of(2, 2048, 64, 4160, 0);
constexpr Kernel avx512_fp32 = kernel_of(6, 4096, 0, 0, 0);

constexpr const Kernel* kernels[]{&avx512_fp16, &avx2_bf16, &portable_bf16, &avx512_fp32};
constexpr std::int64_t many_tokens[]{1, 6, 47, 48, 49, 100, 128, 129, 200, 256, 258, 259, 512, 513, 2048};

Cut cut_of(const Kernel& kernel, std::int64_t columns, std::int64_t halves, std::int64_t threads,
           std::int64_t second_level) {
  return {.columns = columns,
          .row_bytes = 8192,
          .halves = halves,
          .multiplied_halves = halves,
          .threads = threads,
          .second_level = second_level,
          .kernel = kernel};
}

// function(cut, tokens, a text that tells them)
template <class Function>
void for_each_cut(Function function) {
  for (const Kernel* kernel : kernels) {
    for (const std::int64_t columns : {16, 100, 576, 8192, 14336}) {
      for (const std::int64_t halves : {1, 2}) {
        for (const std::int64_t threads : {1, 2, 7, 64}) {
          for (const std::int64_t second_level : {std::int64_t{0}, mib / 2, mib, 2 * mib}) {
            for (const std::int64_t tokens : many_tokens) {
              function(cut_of(*kernel, columns, halves, threads, second_level), tokens,
                       std::to_string(kernel->block_bytes) + " bytes a block, " + std::to_string(columns) +
                           " columns, " + std::to_string(halves) + " halves, " + std::to_string(threads) +
                           " threads, " + std::to_string(tokens) + " tokens, a cache of " +
                           std::to_string(second_level));
            }
          }
        }
      }
    }
  }
}

TEST(Cut, ItemsHoldAllColumnsAndTokens) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, const std::string& what) {
    const Division d = cut.divide(tokens);
    EXPECT_GE(d.panels * d.rows, cut.columns) << what;
    EXPECT_LT((d.panels - 1) * d.rows, cut.columns) << what;
    EXPECT_GE(d.blocks * d.tokens, tokens) << what;
    EXPECT_LT((d.blocks - 1) * d.tokens, tokens) << what;
    EXPECT_EQ(d.rows % cut.row_unit(), 0) << what;
  });
}

// With fewer tokens than the workspace was asked for, too.
TEST(Cut, AnItemFitsItsWorkspace) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, const std::string& what) {
    const Division d = cut.divide(tokens);
    const std::int64_t rows = d.rows * cut.multiplied_halves;
    ASSERT_LE(rows, most_rows) << what;
    for (const std::int64_t most : many_tokens) {
      if (most < tokens) continue;
      EXPECT_LE(cut.halves * d.rows * d.tokens, cut.most_sums_of(most)) << what << ", room for " << most;
      EXPECT_LE(cut.kernel.scratch_for(cut.widens(std::min(tokens, d.tokens)), rows), cut.most_scratch_of(most))
          << what << ", room for " << most;
    }
  });
}

// Blocks that are multiplied together, and the next ones, leave room for the sums: half of 1 MiB, or of 2.
TEST(Cut, APanelStaysInTheSecondLevelCache) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, const std::string& what) {
    const Division d = cut.divide(tokens);
    const bool widened = cut.widens(d.tokens);
    const std::int64_t block = widened ? cut.kernel.widened_row_bytes - 64 : cut.kernel.block_bytes;
    EXPECT_LE(d.rows * cut.multiplied_halves * block, cut.second_level >= 2 * mib ? mib / 2 : mib / 4) << what;
  });
}

// Only where a run widens does it take memory for that.
TEST(Cut, FewTokensNeedNoWidenedWeights) {
  const Cut cut = cut_of(avx512_fp16, 8192, 2, 2, 2 * mib);
  EXPECT_EQ(cut.most_scratch_of(47), avx512_fp16.scratch_bytes);
  EXPECT_EQ(cut.most_scratch_of(48), avx512_fp16.scratch_bytes + 64 * avx512_fp16.widened_row_bytes);
  EXPECT_EQ(cut.most_scratch_of(129), avx512_fp16.scratch_bytes + 128 * avx512_fp16.widened_row_bytes);
}

// Each kernel from the cache on in which it gains.
TEST(Cut, WidenedWeightsWantACache) {
  for (const std::int64_t second_level : {std::int64_t{0}, mib / 2, mib, 2 * mib - 1}) {
    const Cut small = cut_of(avx512_fp16, 8192, 2, 2, second_level);
    EXPECT_FALSE(small.widens(512)) << second_level;
    EXPECT_EQ(small.most_scratch_of(512), avx512_fp16.scratch_bytes) << second_level;
    EXPECT_TRUE(cut_of(portable_bf16, 8192, 2, 2, second_level).widens(48)) << second_level;
  }
  EXPECT_TRUE(cut_of(avx512_fp16, 8192, 2, 2, 2 * mib).widens(48));
  EXPECT_FALSE(cut_of(avx512_fp32, 8192, 2, 2, 2 * mib).widens(512));
}

}  // namespace
}  // namespace gatefold::cpu
