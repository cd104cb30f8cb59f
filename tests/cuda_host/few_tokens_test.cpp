#include "cuda/family/few_tokens.hpp"

#include <gtest/gtest.h>

#include "cuda/implementations.hpp"
#include "gated_problem.hpp"

namespace gatefold::cuda {
namespace {

struct Block {
  const char* model;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t first_of_gate_up;  // tokens from which on sm90 takes the product
  std::int64_t first_of_down;
};

// As measured (docs/kernels/decode_log.md, docs/kernels/sm90_down_log.md), and weights beyond what was.
constexpr Block blocks[] = {{"smollm2-135m", 576, 1536, 17, 17},        {"smollm2-360m", 960, 2560, 5, 17},
                            {"qwen3-30b expert", 2048, 768, 65, 33},    {"qwen3-235b expert", 4096, 1536, 65, 33},
                            {"deepseek-v3 expert", 7168, 2048, 17, 33}, {"qwen2.5-0.5b", 896, 4864, 1, 9},
                            {"qwen3-0.6b", 1024, 3072, 1, 17},          {"qwen3-1.7b", 2048, 6144, 9, 9},
                            {"llama3.2-1b", 2048, 8192, 9, 9},          {"qwen2.5-1.5b", 1536, 8960, 1, 1},
                            {"llama3.2-3b", 3072, 8192, 9, 9},          {"qwen3-4b", 2560, 9728, 9, 1},
                            {"gpt-oss-20b", 2880, 2880, 9, 17},         {"llama2-7b", 4096, 11008, 9, 33},
                            {"gemma2-9b", 3584, 14336, 9, 65},          {"qwen2.5-7b", 3584, 18944, 9, 65},
                            {"llama3.1-8b", 4096, 14336, 9, 33},        {"gemma2-27b", 4608, 36864, 9, 5},
                            {"qwen3-14b", 5120, 17408, 33, 5},          {"mixtral-8x22b", 6144, 16384, 33, 9},
                            {"deepseek-v3", 7168, 18432, 33, 33},       {"llama3.1-70b", 8192, 28672, 9, 33},
                            {"llama3.1-405b", 16384, 53248, 49, 65}};

TEST(FewTokens, AreLeftToTheKernelsForThemUpToASize) {
  for (const Block& block : blocks) {
    const Problem gate_up = sm90::gated_problem(block.hidden_size, block.intermediate_size);
    const Problem down = sm90::plain_problem(block.intermediate_size, block.hidden_size);
    EXPECT_EQ(FewTokens::first_of_sm90(gate_up), block.first_of_gate_up) << block.model;
    EXPECT_EQ(FewTokens::first_of_sm90(down), block.first_of_down) << block.model;
  }
}

TEST(FewTokens, AreDecodesUpToANumber) {
  const auto of_gate_up = [](std::int64_t hidden_size, std::int64_t intermediate_size) {
    return FewTokens::first_of_sm90_decode(sm90::gated_problem(hidden_size, intermediate_size));
  };
  EXPECT_EQ(of_gate_up(4096, 14336), 9) << "Llama 3.1 8B";
  EXPECT_EQ(of_gate_up(8192, 28672), 9) << "Llama 3.1 70B, whose x decode keeps";
  EXPECT_EQ(of_gate_up(16384, 53248), 7) << "Llama 3.1 405B, 3.5 GB";
  EXPECT_EQ(of_gate_up(2048, 8192), 9) << "Llama 3.2 1B";
  EXPECT_EQ(of_gate_up(2048, 768), 17) << "Qwen3 30B's expert, of few tiles";
  EXPECT_EQ(of_gate_up(7168, 2048), 17) << "DeepSeek V3's expert, of few tiles";
  EXPECT_EQ(of_gate_up(1152, 6912), 9) << "Gemma 3 1B";
  EXPECT_EQ(of_gate_up(1024, 3072), 9) << "Qwen3 0.6B, 13 MB";

  const auto of_down = [](std::int64_t hidden_size, std::int64_t intermediate_size) {
    return FewTokens::first_of_sm90_decode(sm90::plain_problem(intermediate_size, hidden_size));
  };
  EXPECT_EQ(of_down(4096, 14336), 9) << "Llama 3.1 8B, full rounds";
  EXPECT_EQ(of_down(8192, 28672), 7) << "Llama 3.1 70B, the same, 470 MB";
  EXPECT_EQ(of_down(3072, 8192), 9) << "Llama 3.2 3B, 24 tiles of 128";
  EXPECT_EQ(of_down(2560, 9728), 1) << "Qwen3 4B, 20 tiles of 128";
  EXPECT_EQ(of_down(1152, 6912), 9) << "Gemma 3 1B, 16 MB";
  EXPECT_EQ(of_down(7168, 18432), 5) << "DeepSeek V3's dense layers, of decode's rounds 0.85";
  EXPECT_EQ(of_down(5120, 25600), 5) << "Qwen3 32B, of decode's rounds 0.81";
  EXPECT_EQ(of_down(896, 4864), 9) << "Qwen2.5 0.5B, 9 MB";
  EXPECT_EQ(of_down(960, 2560), 17) << "SmolLM2 360M, short sums";
  EXPECT_EQ(of_down(7168, 2048), 17) << "DeepSeek V3's expert, short sums";
}

// Weights that are settled have no kernels in parts.
TEST(FewTokens, OfSettledWeightsAreNotSummedInParts) {
  Problem down = sm90::plain_problem(8192, 2048);
  EXPECT_EQ(FewTokens::first_of_sm90(down), 9);
  down.weights_settled = true;
  EXPECT_EQ(FewTokens::first_of_sm90(down), 33);
  for (const std::int64_t columns : {2560, 5120}) {
    down = sm90::plain_problem(17408, columns);
    EXPECT_EQ(FewTokens::first_of_sm90(down), FewTokens::first_of_sm90_decode(down)) << columns;
    down.weights_settled = true;
    EXPECT_EQ(FewTokens::first_of_sm90(down), 33) << columns;
  }
}

Problem with_strides(Problem problem) {
  problem.ld_x = problem.ld_gate = problem.ld_up = problem.hidden_size;
  problem.ld_out = problem.intermediate_size;
  return problem;
}

// Between what the three take there is no gap: decode has those up to 16, sm90 those from 17 on wherever nothing before
// it has them.
TEST(FewTokens, HaveATaker) {
  for (const Block& block : blocks) {
    for (const Problem& product : {sm90::gated_problem(block.hidden_size, block.intermediate_size),
                                   sm90::plain_problem(block.intermediate_size, block.hidden_size)}) {
      const Problem problem = with_strides(product);
      EXPECT_LE(sm90_products()->supports(problem).min_tokens, most_tokens_of_decode + 1) << block.model;
      EXPECT_GE(decode_products()->supports(problem).max_tokens, most_tokens_of_decode) << block.model;
    }
  }
}

// What decode can't take sm90 has from the first token on.
TEST(FewTokens, ThatDecodeCannotTakeAreSm90s) {
  Problem problem = sm90::gated_problem(100, 4096);
  problem.ld_x = problem.ld_up = problem.ld_gate = 104;
  problem.ld_out = 4096;
  EXPECT_EQ(sm90_products()->supports(problem).min_tokens, 0);
  EXPECT_FALSE(decode_products()->supports(problem).eligible);
}

}  // namespace
}  // namespace gatefold::cuda
