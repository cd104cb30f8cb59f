#include "checkpoint/presets.hpp"

#include <gtest/gtest.h>

#include <set>

#include "checkpoint/files.hpp"

namespace gatefold::checkpoint::test {
namespace {

TEST(Presets, AreComplete) {
  std::set<std::string> names;
  for (const Preset& preset : presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_GT(preset.hidden_size, 0) << preset.name;
    EXPECT_GT(preset.intermediate_size, 0) << preset.name;
    EXPECT_GT(preset.num_layers, 0) << preset.name;
    EXPECT_EQ(preset.num_experts.has_value(), preset.num_experts_per_token.has_value()) << preset.name;
    EXPECT_EQ(preset.num_kv_heads.has_value(), preset.head_dim.has_value()) << preset.name;
  }
  EXPECT_GE(names.size(), 30U);
}

TEST(Presets, HoldWhatTheFileSays) {
  const Preset& llama = find_preset("llama3.1-8b");
  EXPECT_EQ(llama.hidden_size, 4096);
  EXPECT_EQ(llama.intermediate_size, 14336);
  EXPECT_EQ(llama.num_layers, 32);
  EXPECT_EQ(llama.num_kv_heads, 8);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.activation.kind, GATEFOLD_ACTIVATION_SILU);
  EXPECT_FALSE(llama.num_experts.has_value());
  EXPECT_EQ(find_preset("gemma2-2b").activation.kind, GATEFOLD_ACTIVATION_GELU_TANH);
  EXPECT_EQ(find_preset("gpt-oss-20b").activation.kind, GATEFOLD_ACTIVATION_SWIGLU_CLAMPED);
  EXPECT_FALSE(find_preset("deepseek-v3-dense").num_kv_heads.has_value());
  EXPECT_EQ(find_preset("qwen3-30b-a3b").moe_intermediate_size, 768);
}

TEST(Presets, UnknownNamesGetTheNearest) {
  expect_input_error([] { (void)find_preset("llama3.1-8B"); }, {"\"llama3.1-8B\"", "llama3.1-8b"});
  expect_input_error([] { (void)find_preset("phi4"); }, {"\"phi4\"", "phi-4"});
  expect_input_error([] { (void)find_preset("gpt-oss"); }, {"gpt-oss-20b", "gpt-oss-120b"});
  expect_input_error([] { (void)find_preset("zzzzzzzz"); }, {"smollm2-135m", "gpt-oss-120b"});
  expect_input_error([] { (void)find_preset(""); }, {"unknown model \"\"", "smollm2-135m"});
}

}  // namespace
}  // namespace gatefold::checkpoint::test
