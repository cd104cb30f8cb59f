// One layer of a single file: which tensors make it, and how they must agree.
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/files.hpp"

namespace gatefold::checkpoint::test {
namespace {

constexpr std::int64_t D = 6;
constexpr std::int64_t F = 10;
constexpr auto bf16 = GATEFOLD_DTYPE_BF16;

class Layer : public testing::Test {
 protected:
  std::filesystem::path file(const std::vector<OwnedTensor>& tensors) {
    const std::filesystem::path path = folder_ / "model.safetensors";
    write_tensors(path, tensors);
    return path;
  }

  void expect_refused(const std::vector<OwnedTensor>& tensors, std::vector<std::string> parts, std::int64_t layer = 0) {
    const auto path = file(tensors);
    parts.emplace_back("model.safetensors");
    expect_input_error([&] { (void)Checkpoint(path).layer(layer); }, parts);
  }

  TemporaryFolder folder_;
};

std::string weight(const std::string& projection, const std::string& prefix = "model.layers.0.mlp.") {
  return prefix + projection + ".weight";
}

std::vector<OwnedTensor> separate(const std::string& prefix = "model.layers.0.mlp.", gatefold_dtype dtype = bf16) {
  return {{weight("gate_proj", prefix), dtype, {F, D}, 100},
          {weight("up_proj", prefix), dtype, {F, D}, 200},
          {weight("down_proj", prefix), dtype, {D, F}, 300}};
}

TEST_F(Layer, Separate) {
  for (const gatefold_dtype dtype : {GATEFOLD_DTYPE_FP32, GATEFOLD_DTYPE_FP16, GATEFOLD_DTYPE_BF16}) {
    const auto tensors = separate("model.layers.0.mlp.", dtype);
    const MlpLayer layer = Checkpoint(file(tensors)).layer(0);
    EXPECT_EQ(layer.layout.kind(), GATEFOLD_LAYOUT_SEPARATE);
    EXPECT_EQ(layer.dtype, dtype);
    EXPECT_EQ(layer.hidden_size, D);
    EXPECT_EQ(layer.intermediate_size, F);
    EXPECT_FALSE(layer.activation.has_value()) << "there is no config.json";
    ASSERT_TRUE(layer.up.has_value());
    EXPECT_TRUE(std::ranges::equal(layer.gate.tensor.range(), tensors[0].memory));
    EXPECT_TRUE(std::ranges::equal(layer.up->tensor.range(), tensors[1].memory));
    EXPECT_TRUE(std::ranges::equal(layer.down.tensor.range(), tensors[2].memory));
    layer.release();
    layer.will_need();
    EXPECT_TRUE(std::ranges::equal(layer.gate.tensor.range(), tensors[0].memory));
  }
}

TEST_F(Layer, Packed) {
  const MlpLayer layer =
      Checkpoint(file({{weight("gate_up_proj"), bf16, {2 * F, D}}, {weight("down_proj"), bf16, {D, F}}})).layer(0);
  EXPECT_EQ(layer.layout.kind(), GATEFOLD_LAYOUT_GATE_UP);
  EXPECT_EQ(layer.intermediate_size, F);
  EXPECT_FALSE(layer.up.has_value());
}

TEST_F(Layer, PrefixesOfMultimodalAndBareModels) {
  for (const std::string prefix : {"", "language_model.model.", "model.language_model.", "language_model."}) {
    const Checkpoint checkpoint(file(separate(prefix + "layers.3.mlp.")));
    EXPECT_EQ(checkpoint.layers(), (std::vector<std::int64_t>{3})) << prefix;
    EXPECT_EQ(checkpoint.layer(3).gate.tensor.name, prefix + "layers.3.mlp.gate_proj.weight");
  }
}

TEST_F(Layer, MissingLayersNameThoseThatAreThere) {
  std::vector<OwnedTensor> tensors{{"model.embed_tokens.weight", bf16, {4, D}},
                                   {"model.layers.7.mlp.experts.0.gate_proj.weight", bf16, {F, D}}};
  expect_refused(tensors, {"layer 0", "no layer has"});
  for (const char* layer : {"0", "1", "2", "5", "10"}) {
    for (const OwnedTensor& t : separate(std::string("model.layers.") + layer + ".mlp.")) tensors.push_back(t);
  }
  EXPECT_EQ(Checkpoint(file(tensors)).layers(), (std::vector<std::int64_t>{0, 1, 2, 5, 10}));
  expect_refused(tensors, {"layer 3", "0-2, 5, 10"}, 3);
  expect_refused(tensors, {"layer -1", "0-2, 5, 10"}, -1);
}

TEST_F(Layer, MissingTensors) {
  for (std::size_t missing = 0; missing < 3; ++missing) {
    auto tensors = separate();
    const std::string name = tensors[missing].name;
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(missing));
    expect_refused(tensors, {"no tensor " + name});
  }
}

TEST_F(Layer, ShapesThatDisagree) {
  auto tensors = separate();
  tensors[1] = {weight("up_proj"), bf16, {F + 1, D}};
  expect_refused(tensors, {"up_proj", "[11, 6]", "gate_proj", "[10, 6]"});
  tensors = separate();
  tensors[2] = {weight("down_proj"), bf16, {F, D}};
  expect_refused(tensors, {"down_proj", "[10, 6]", "expected [6, 10]"});
  tensors = separate();
  tensors[0] = {weight("gate_proj"), bf16, {F * D}};
  expect_refused(tensors, {"gate_proj", "[60]", "1 dimensions"});
  expect_refused({{weight("gate_up_proj"), bf16, {2 * F + 1, D}}, {weight("down_proj"), bf16, {D, F}}},
                 {"gate_up_proj", "21 rows"});
}

TEST_F(Layer, TypesThatDisagreeOrCannotBeComputed) {
  auto tensors = separate();
  tensors[1] = {weight("up_proj"), GATEFOLD_DTYPE_FP16, {F, D}};
  expect_refused(tensors, {"up_proj", "F16", "gate_proj", "BF16"});
  const std::string header = R"({")" + weight("gate_proj") +
                             R"(":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[0,1]},")" + weight("up_proj") +
                             R"(":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[1,2]},")" + weight("down_proj") +
                             R"(":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[2,3]}})";
  write_file(folder_ / "fp8.safetensors", file_bytes(header, 3));
  expect_input_error([&] { (void)Checkpoint(folder_ / "fp8.safetensors").layer(0); },
                     {"fp8.safetensors", "gate_proj", "F8_E4M3", "expected BF16, F16 or F32"});
}

std::string bias(const std::string& projection) { return "model.layers.0.mlp." + projection + ".bias"; }

std::vector<OwnedTensor> separate_with_biases() {
  auto tensors = separate();
  tensors.emplace_back(bias("gate_proj"), bf16, Shape{F}, 400);
  tensors.emplace_back(bias("up_proj"), bf16, Shape{F}, 500);
  tensors.emplace_back(bias("down_proj"), bf16, Shape{D}, 600);
  return tensors;
}

TEST_F(Layer, Biases) {
  EXPECT_FALSE(Checkpoint(file(separate())).layer(0).biases().any());
  const auto tensors = separate_with_biases();
  const MlpLayer layer = Checkpoint(file(tensors)).layer(0);
  ASSERT_TRUE(layer.gate_bias && layer.up_bias && layer.down_bias);
  EXPECT_TRUE(std::ranges::equal(layer.gate_bias->tensor.range(), tensors[3].memory));
  EXPECT_TRUE(std::ranges::equal(layer.up_bias->tensor.range(), tensors[4].memory));
  EXPECT_TRUE(std::ranges::equal(layer.down_bias->tensor.range(), tensors[5].memory));
  layer.release();
  layer.will_need();
  EXPECT_TRUE(std::ranges::equal(layer.up_bias->tensor.range(), tensors[4].memory));

  auto up_alone = separate();
  up_alone.push_back(tensors[4]);
  const Biases biases = Checkpoint(file(up_alone)).layer(0).biases();
  EXPECT_TRUE(biases.up && !biases.gate && !biases.down);
}

TEST_F(Layer, PackedBias) {
  const MlpLayer layer = Checkpoint(file({{weight("gate_up_proj"), bf16, {2 * F, D}},
                                          {weight("down_proj"), bf16, {D, F}},
                                          {bias("gate_up_proj"), bf16, Shape{2 * F}}}))
                             .layer(0);
  EXPECT_TRUE(layer.gate_bias.has_value());
  EXPECT_FALSE(layer.up_bias || layer.down_bias);
}

TEST_F(Layer, BiasesThatDisagree) {
  auto tensors = separate_with_biases();
  tensors[3] = {bias("gate_proj"), bf16, Shape{F + 1}};
  expect_refused(tensors, {"gate_proj.bias", "[11]", "expected [10]", "[10, 6]"});
  tensors = separate_with_biases();
  tensors[5] = {bias("down_proj"), bf16, Shape{F}};
  expect_refused(tensors, {"down_proj.bias", "[10]", "expected [6]", "[6, 10]"});
  tensors = separate_with_biases();
  tensors[4] = {bias("up_proj"), bf16, Shape{F, 1}};
  expect_refused(tensors, {"up_proj.bias", "[10, 1]", "expected [10]"});
  tensors = separate_with_biases();
  tensors[4] = {bias("up_proj"), GATEFOLD_DTYPE_FP32, Shape{F}};
  expect_refused(tensors, {"up_proj.bias", "F32", "up_proj.weight", "BF16"});
  tensors = separate();
  tensors.emplace_back(bias("gate_up_proj"), bf16, Shape{2 * F});
  expect_refused(tensors, {"gate_up_proj.bias belongs to", "gate_proj.weight"});
  expect_refused({{weight("gate_up_proj"), bf16, {2 * F, D}},
                  {weight("down_proj"), bf16, {D, F}},
                  {bias("up_proj"), bf16, Shape{F}}},
                 {"up_proj.bias belongs to", "gate_up_proj.weight"});
}

TEST_F(Layer, BiasesAndConfigAgree) {
  const auto expect_config_refuses = [&](const std::vector<OwnedTensor>& tensors,
                                         const std::vector<std::string>& parts) {
    const auto path = file(tensors);
    expect_input_error([&] { (void)Checkpoint(path).layer(0); }, parts);
  };
  write_file(folder_ / "config.json", R"({"hidden_act": "silu", "mlp_bias": true})");
  EXPECT_TRUE(Checkpoint(file(separate_with_biases())).layer(0).biases().any());
  auto tensors = separate_with_biases();
  tensors.pop_back();
  expect_config_refuses(tensors, {"config.json: mlp_bias is true", "layer 0", "down_proj.weight"});
  expect_config_refuses(separate(), {"config.json: mlp_bias is true"});
  write_file(folder_ / "config.json", R"({"hidden_act": "silu", "mlp_bias": false})");
  EXPECT_FALSE(Checkpoint(file(separate())).layer(0).biases().any());
  expect_config_refuses(separate_with_biases(), {"config.json: mlp_bias is false", "gate_proj.bias"});
}

}  // namespace
}  // namespace gatefold::checkpoint::test
