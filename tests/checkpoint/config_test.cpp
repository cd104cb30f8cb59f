#include "checkpoint/config.hpp"

#include <gtest/gtest.h>

#include "checkpoint/files.hpp"
#include "gatefold/names.h"

namespace gatefold::checkpoint::test {
namespace {

class Config : public testing::Test {
 protected:
  ModelConfig read(const std::string& text) {
    write_file(folder_ / "config.json", text);
    return read_config(folder_ / "config.json");
  }

  void expect_refused(const std::string& text, std::vector<std::string> parts) {
    parts.emplace_back("config.json");
    expect_input_error([&] { read(text); }, parts);
  }

  TemporaryFolder folder_;
};

TEST_F(Config, ActivationNames) {
  const std::vector<std::pair<std::string, gatefold_activation>> names{
      {"silu", GATEFOLD_ACTIVATION_SILU},           {"swish", GATEFOLD_ACTIVATION_SILU},
      {"gelu", GATEFOLD_ACTIVATION_GELU_ERF},       {"gelu_new", GATEFOLD_ACTIVATION_GELU_TANH},
      {"gelu_fast", GATEFOLD_ACTIVATION_GELU_TANH}, {"gelu_pytorch_tanh", GATEFOLD_ACTIVATION_GELU_TANH},
      {"relu", GATEFOLD_ACTIVATION_RELU},           {"sigmoid", GATEFOLD_ACTIVATION_SIGMOID},
      {"linear", GATEFOLD_ACTIVATION_IDENTITY}};
  for (const auto& [name, kind] : names) {
    const auto config = read(R"({"model_type":"llama","hidden_act":")" + name + "\"}");
    ASSERT_TRUE(config.activation.has_value()) << name;
    EXPECT_EQ(config.activation->kind, kind) << name;
  }
  expect_refused(R"({"hidden_act":"quick_gelu"})", {"\"quick_gelu\""});
  expect_refused(R"({"hidden_act":1})", {"hidden_act", "1", "string"});
}

TEST_F(Config, EveryActivationHasTheNameThatFindsIt) {
  for (int kind = GATEFOLD_ACTIVATION_SILU; kind <= GATEFOLD_ACTIVATION_SWIGLU_CLAMPED; ++kind) {
    const auto activation = static_cast<gatefold_activation>(kind);
    ASSERT_TRUE(find_activation(gatefold_name_of_activation(activation)).has_value()) << kind;
    EXPECT_EQ(find_activation(gatefold_name_of_activation(activation))->kind, activation);
    EXPECT_EQ(find_activation(config_activation_name(activation)).value().kind, activation);
  }
  EXPECT_FALSE(find_activation("").has_value());
}

TEST_F(Config, GemmaMeansTheTanhForm) {
  const auto kind = [this](const std::string& text) { return read(text).activation.value().kind; };
  EXPECT_EQ(kind(R"({"model_type":"gemma","hidden_act":"gelu","hidden_activation":null})"),
            GATEFOLD_ACTIVATION_GELU_TANH);
  EXPECT_EQ(kind(R"({"model_type":"gemma2","hidden_act":"silu","hidden_activation":"gelu_pytorch_tanh"})"),
            GATEFOLD_ACTIVATION_GELU_TANH);
  EXPECT_EQ(kind(R"({"model_type":"gemma3_text"})"), GATEFOLD_ACTIVATION_GELU_TANH);
  EXPECT_EQ(kind(R"({"model_type":"bert","hidden_act":"gelu"})"), GATEFOLD_ACTIVATION_GELU_ERF);
}

TEST_F(Config, DefaultsOfModelTypes) {
  EXPECT_EQ(read(R"({"model_type":"qwen2"})").activation.value().kind, GATEFOLD_ACTIVATION_SILU);
  EXPECT_FALSE(read(R"({"model_type":"something_new"})").activation.has_value());
  EXPECT_FALSE(read("{}").activation.has_value());
}

TEST_F(Config, ClampedFormOfGptOss) {
  const auto activation = read(R"({"model_type":"gpt_oss","hidden_act":"silu","swiglu_limit":5.5})").activation.value();
  EXPECT_EQ(activation.kind, GATEFOLD_ACTIVATION_SWIGLU_CLAMPED);
  EXPECT_EQ(activation.limit, 5.5F);
  EXPECT_EQ(activation.alpha, Activation::swiglu_clamped().alpha);
  expect_refused(R"({"model_type":"gpt_oss","swiglu_limit":-1})", {"swiglu_limit", "-1"});
}

TEST_F(Config, Sizes) {
  const auto config = read(R"({"hidden_size":576,"intermediate_size":1536})");
  EXPECT_EQ(config.hidden_size, 576);
  EXPECT_EQ(config.intermediate_size, 1536);
  EXPECT_FALSE(read(R"({"intermediate_size":[1,2]})").intermediate_size.has_value()) << "one per layer";
  expect_refused(R"({"hidden_size":-1})", {"hidden_size", "-1"});
  expect_refused(R"({"hidden_size":18446744073709551615})", {"hidden_size", "18446744073709551615"});
  expect_refused(R"({"intermediate_size":"1536"})", {"intermediate_size", "\"1536\""});
}

TEST_F(Config, MlpBias) {
  EXPECT_EQ(read(R"({"mlp_bias": true})").mlp_bias, true);
  EXPECT_EQ(read(R"({"mlp_bias": false})").mlp_bias, false);
  EXPECT_FALSE(read(R"({"mlp_bias": null})").mlp_bias.has_value());
  expect_refused(R"({"mlp_bias": 1})", {"mlp_bias is 1", "not true or false"});
}

TEST_F(Config, MultimodalModelsAreReadFromTextConfig) {
  const auto config =
      read(R"({"model_type":"gemma3","hidden_size":1,"text_config":{"hidden_size":2560,"model_type":"gemma3_text"}})");
  EXPECT_EQ(config.hidden_size, 2560);
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.activation.value().kind, GATEFOLD_ACTIVATION_GELU_TANH);
  EXPECT_EQ(read(R"({"model_type":"gemma3","text_config":{}})").model_type, "gemma3");
  expect_refused(R"({"text_config":1})", {"text_config", "number"});
}

// json.dump of Python writes them, and transformers reads them.
TEST_F(Config, NumbersThatOnlyPythonWrites) {
  const auto config = read(R"({"hidden_act": "silu", "hidden_size": 16, "time_step_limit": [0.0, Infinity],
                               "a": NaN, "b": -Infinity, "c": "not \"NaN or Infinity"})");
  EXPECT_EQ(config.hidden_size, 16);
  expect_refused(R"({"hidden_size": Infinity})", {"hidden_size", "Infinity", "not a size"});
  expect_refused(R"({"model_type": "gpt_oss", "swiglu_limit": Infinity})", {"swiglu_limit", "Infinity"});
  expect_refused(R"({"a": infinity})", {"not valid JSON"});
}

}  // namespace
}  // namespace gatefold::checkpoint::test
