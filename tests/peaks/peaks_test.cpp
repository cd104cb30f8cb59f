#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gatefold/gatefold.h"
#include "peaks/measure.hpp"

// The loops that peaks are measured with do all of the work that is counted. How fast is no test's business.
namespace gatefold::peaks {
namespace {

// The instruction sets, as kernels are named, that this processor has. The matrix unit is not tried: a process must be
// allowed its registers first.
std::set<std::string> here() {
  gatefold_device_info cpu{};
  if (gatefold_device_query(GATEFOLD_DEVICE_CPU, 0, &cpu) != GATEFOLD_SUCCESS) return {};
  std::istringstream features(cpu.features);
  std::set<std::string> names{"portable"};
  for (std::string name; features >> name;) names.insert(name == "avx512f" ? "avx512" : name);
  names.erase("amx_bf16");
  return names;
}

bool can_run(const std::string& instruction_set) { return here().contains(instruction_set); }

struct alignas(64) Line {
  std::byte bytes[64];
};

class Products : public testing::TestWithParam<const char*> {};

// With ones every product is 1, and the sum of all sums counts them: exactly, being below 2^24.
TEST_P(Products, EveryOperationIsDone) {
  const ProductLoop* loop = find_product_loop(GetParam());
  if (loop == nullptr || !can_run(GetParam())) GTEST_SKIP() << GetParam() << " is not here";
  std::vector<Line> operands(loop->operand_bytes / sizeof(Line));
  ASSERT_EQ(operands.size() * sizeof(Line), loop->operand_bytes);
  const std::uint32_t one = loop->operands == Operands::bf16 ? 0x3f803f80U : 0x3f800000U;
  for (std::size_t i = 0; i < loop->operand_bytes; i += sizeof one) {
    std::memcpy(operands[i / 64].bytes + i % 64, &one, sizeof one);
  }
  for (const int passes : {0, 1, 3}) {
    EXPECT_EQ(loop->run(operands.data()->bytes, passes), loop->flops_per_pass / 2 * passes) << passes;
  }
  // Nor is any operand left out: each line's contribution is missed.
  for (std::size_t line = 0; line < operands.size(); ++line) {
    const Line kept = operands[line];
    std::memset(operands[line].bytes, 0, sizeof(Line));
    EXPECT_LT(loop->run(operands.data()->bytes, 1), loop->flops_per_pass / 2) << line;
    operands[line] = kept;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Products, testing::Values("portable", "avx2", "avx512", "avx512_bf16", "neon"));

TEST(FindProductLoop, KnowsNoOther) {
  EXPECT_EQ(find_product_loop("reference"), nullptr);
  EXPECT_EQ(find_product_loop(""), nullptr);
}

TEST(ReadLoops, AreTheWidestOfTheFeatures) {
  EXPECT_EQ(read_loops("").data(), portable_reads);
#if defined(__x86_64__)
  EXPECT_EQ(read_loops("avx2").data(), avx2_reads);
  EXPECT_EQ(read_loops("avx2 fma f16c").data(), avx2_reads);
  EXPECT_EQ(read_loops("avx2 fma f16c avx512f avx512_bf16").data(), avx512_reads);
  EXPECT_EQ(read_loops("avx2 avx512_bf16").data(), avx2_reads);  // another name that begins alike
  EXPECT_EQ(read_loops("avx avx22").data(), portable_reads);
#endif
}

struct NamedRead {
  const char* instruction_set;
  const ReadLoop& loop;
};

// Every word is in the result: one bit that changes anywhere changes it.
TEST(Reads, EveryWordIsRead) {
  constexpr std::size_t bytes = 3 * read_unit;
  const auto seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Line> data(bytes / sizeof(Line));
  std::vector<std::uint64_t> words(bytes / 8);
  std::uint64_t wanted = 0;
  for (std::uint64_t& word : words) wanted ^= word = random();
  std::memcpy(data.data(), words.data(), bytes);
  std::vector<NamedRead> reads{{"portable", portable_reads[0]}, {"portable", portable_reads[1]}};
#if defined(__x86_64__)
  for (const ReadLoop& loop : avx2_reads) reads.push_back({"avx2", loop});
  for (const ReadLoop& loop : avx512_reads) reads.push_back({"avx512", loop});
#endif
  for (const NamedRead& read : reads) {
    if (!can_run(read.instruction_set)) continue;
    EXPECT_EQ(read.loop.run(data.data()->bytes, bytes), wanted) << read.instruction_set << ", seed " << seed;
    EXPECT_EQ(read.loop.run(data.data()->bytes, 0), 0U);
  }
}

}  // namespace
}  // namespace gatefold::peaks
