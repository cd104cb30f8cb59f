#include "cpu/loops/cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/status.hpp"

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
                .block_bytes = block_bytes,
                .streamed_tokens = tile_tokens};
  kernel.widened_from = widened_rows > 0 ? 48 : 0;
  kernel.widened_cache = widened_cache;
  kernel.widened_rows = widened_rows;
  kernel.widened_row_bytes = row_bytes;
  return kernel;
}
constexpr Kernel avx512_fp16 = kernel_of(6, 2048, 64, 4160, 2 * mib);
constexpr Kernel avx2_bf16 = kernel_of(2, 4096, 32, 8256, 2 * mib);
constexpr Kernel portable_bf16 = kernel_of(2, 2048, 64, 4160, 0);
constexpr Kernel avx2_fp32 = kernel_of(3, 4096, 0, 0, 0);

// With outer products of 64 rows and groups of 6 tokens.
constexpr Kernel outer_kernel(std::int64_t from, std::int64_t columns) {
  Kernel kernel = kernel_of(6, 4096, 0, 0, 0);
  kernel.packed_tokens = 6;
  kernel.outer = {.from = from, .terms = 2048, .rows = 64, .columns = columns, .scratch_bytes = 269312};
  return kernel;
}
constexpr Kernel avx512_fp32 = outer_kernel(48, 16);
constexpr Kernel avx512_bf16 = outer_kernel(72, 32);

constexpr const Kernel* kernels[]{&avx512_fp16, &avx2_bf16, &portable_bf16, &avx2_fp32, &avx512_fp32, &avx512_bf16};
constexpr std::int64_t many_tokens[]{1,   2,   3,   6,   7,   11,  12,  47,   48,   49,   71,
                                     72,  100, 128, 129, 191, 192, 200, 256,  258,  259,  400,
                                     401, 512, 513, 516, 517, 800, 816, 1032, 1033, 2048, 5000};

Cut cut_of(const Kernel& kernel, std::int64_t columns, std::int64_t halves, std::int64_t threads,
           std::int64_t second_level) {
  return {.columns = columns,
          .row_bytes = 8192,
          .halves = halves,
          .multiplied_halves = halves,
          .threads = threads,
          .caches = {49152, second_level},
          .kernel = kernel};
}

// What may be packed in a run of so many tokens.
std::vector<Packing> packings_of(const Cut& cut, std::int64_t tokens) {
  std::vector<Packing> packings{{}};
  if (cut.packs_x(tokens)) packings = {{.x = true, .out = false}, {.x = true, .out = true}, {.x = false, .out = true}};
  return packings;
}

// function(cut, tokens, packing, a text that tells them)
template <class Function>
void for_each_cut(Function function) {
  for (const Kernel* kernel : kernels) {
    for (const std::int64_t columns : {16, 100, 576, 8192, 14336}) {
      for (const std::int64_t halves : {1, 2}) {
        for (const std::int64_t threads : {1, 2, 7, 64}) {
          for (const std::int64_t second_level : {std::int64_t{0}, mib / 2, mib, 2 * mib}) {
            for (const std::int64_t tokens : many_tokens) {
              const Cut cut = cut_of(*kernel, columns, halves, threads, second_level);
              for (const Packing packing : packings_of(cut, tokens)) {
                function(cut, tokens, packing,
                         concat(kernel->block_bytes, " bytes a block, ", columns, " columns, ", halves, " halves, ",
                                threads, " threads, ", tokens, " tokens, a cache of ", second_level, ", packed x ",
                                packing.x, ", packed output ", packing.out));
              }
            }
          }
        }
      }
    }
  }
}

TEST(Cut, ItemsHoldAllColumnsAndTokens) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, Packing packing, const std::string& what) {
    const Division d = cut.divide(tokens, packing);
    EXPECT_GE(d.panels * d.rows, cut.columns) << what;
    EXPECT_LT((d.panels - 1) * d.rows, cut.columns) << what;
    EXPECT_GE(d.blocks * d.tokens, tokens) << what;
    EXPECT_LT((d.blocks - 1) * d.tokens, tokens) << what;
    EXPECT_EQ(d.rows % cut.row_unit(packing), 0) << what;
  });
}

// With fewer tokens than the workspace was asked for, too.
TEST(Cut, AnItemFitsItsWorkspace) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, Packing packing, const std::string& what) {
    const Division d = cut.divide(tokens, packing);
    const std::int64_t rows = d.rows * cut.multiplied_halves;
    ASSERT_LE(rows, most_rows) << what;
    for (const std::int64_t most : many_tokens) {
      if (most < tokens) continue;
      EXPECT_LE(cut.halves * d.rows * d.tokens, cut.most_sums_of(most)) << what << ", room for " << most;
      EXPECT_LE(cut.kernel.scratch_for(cut.widens(std::min(tokens, d.tokens)), rows), cut.most_scratch_of(most))
          << what << ", room for " << most;
      if (packing.x) {
        EXPECT_LE(cut.kernel.outer.scratch_bytes, cut.most_scratch_of(most)) << what;
      }
    }
  });
}

// Chunks and items begin with a group, and what is prepared of a chunk's tokens fits.
TEST(Cut, PackedTokensBeginWithAGroup) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, Packing packing, const std::string& what) {
    if (!packing.x && !packing.out) return;
    const std::int64_t chunk = cut.chunk(tokens, packing);
    const Division d = cut.divide(chunk, packing);
    if (chunk < tokens) {
      EXPECT_EQ(chunk % cut.kernel.packed_tokens, 0) << what;
    }
    if (d.tokens < chunk) {
      EXPECT_EQ(d.tokens % cut.kernel.packed_tokens, 0) << what;
    }
    if (packing.x && tokens > 400) {
      EXPECT_LE(chunk, (tokens + 1) / 2 + cut.kernel.packed_tokens) << what;
    }
    for (const std::int64_t most : many_tokens) {
      if (most >= tokens) {
        EXPECT_LE(chunk, cut.most_chunk_of(most, packing)) << what << ", room for " << most;
      }
    }
  });
}

// From the tokens on from which they gain, on sums of a whole block of terms, where caches are as Zen 5's.
TEST(Cut, OuterProductsWantTokensTermsAndCaches) {
  const auto packs = [](const Kernel& kernel, std::int64_t tokens, std::int64_t terms, Caches caches) {
    Cut cut = cut_of(kernel, 8192, 2, 2, 0);
    cut.caches = caches;
    return cut.packs(tokens, terms);
  };
  const Caches zen5{49152, mib};
  EXPECT_TRUE(packs(avx512_bf16, 72, 2048, zen5));
  EXPECT_TRUE(packs(avx512_fp32, 48, 2048, zen5));
  EXPECT_FALSE(packs(avx512_bf16, 71, 2048, zen5));
  EXPECT_FALSE(packs(avx512_fp32, 47, 2048, zen5));
  EXPECT_FALSE(packs(avx512_bf16, 512, 2047, zen5));
  EXPECT_FALSE(packs(avx512_bf16, 512, 4096, {32768, mib}));
  EXPECT_FALSE(packs(avx512_bf16, 512, 4096, {49152, 2 * mib}));
  EXPECT_FALSE(packs(avx512_bf16, 512, 4096, {0, 0}));
  EXPECT_FALSE(packs(avx2_fp32, 512, 4096, zen5));
}

// Where nothing is known of the caches, as where they are large.
TEST(Cut, RowsAreFetchedAsTheCachesWant) {
  EXPECT_EQ(fetch_for({32768, mib}), Fetch::to_second_level);
  EXPECT_EQ(fetch_for({49152, mib}), Fetch::at_a_pace);
  EXPECT_EQ(fetch_for({49152, 2 * mib}), Fetch::to_first_level);
  EXPECT_EQ(fetch_for({49152, 0}), Fetch::to_first_level);
  EXPECT_EQ(fetch_for({0, mib}), Fetch::to_first_level);
}

// Blocks that are multiplied together, and the next ones, leave room for the sums: half of 1 MiB, or of 2.
TEST(Cut, APanelStaysInTheSecondLevelCache) {
  for_each_cut([](const Cut& cut, std::int64_t tokens, Packing packing, const std::string& what) {
    const Division d = cut.divide(tokens, packing);
    const bool widened = cut.widens(d.tokens);
    if (packing.x) return;                               // 64 rows at a time then, whatever the panel's
    if (d.tokens <= cut.kernel.streamed_tokens) return;  // each row is read once
    const std::int64_t block = widened ? cut.kernel.widened_row_bytes - 64 : cut.kernel.block_bytes;
    EXPECT_LE(d.rows * cut.multiplied_halves * block, cut.caches.second_level >= 2 * mib ? mib / 2 : mib / 4) << what;
  });
}

// As many as a panel holds, where that leaves every thread its items.
TEST(Cut, StreamsAreLong) {
  for (const std::int64_t halves : {1, 2}) {
    const Cut cut = cut_of(avx512_bf16, 8192, halves, 2, mib);
    for (const std::int64_t tokens : {1, 6}) EXPECT_EQ(cut.divide(tokens, {}).rows * halves, most_rows) << tokens;
    EXPECT_EQ(cut.divide(7, {}).rows * halves, most_rows / 2);
    EXPECT_GE(cut_of(avx512_bf16, 8192, halves, 64, mib).divide(1, {}).items(), 512);
  }
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
