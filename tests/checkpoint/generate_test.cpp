#include "checkpoint/generate.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stop_token>
#include <thread>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/files.hpp"
#include "checkpoint/random_weights.hpp"
#include "checkpoint/temporary_file.hpp"

namespace gatefold::checkpoint::test {
namespace {

GenerateOptions small() {
  GenerateOptions options;
  options.hidden_size = 48;
  options.intermediate_size = 80;
  options.layers = 2;
  return options;
}

TEST(Generate, SingleFile) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  options.activation = Activation::gelu_tanh();
  std::uint64_t last = 0;
  std::uint64_t announced = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    announced = total;
  };
  generate_checkpoint(folder.path(), options);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"config.json", "model.safetensors"}));
  EXPECT_EQ(announced, 2U * 3 * 48 * 80 * 2);
  EXPECT_EQ(last, announced);
  const Checkpoint checkpoint(folder.path());
  EXPECT_EQ(checkpoint.layers(), (std::vector<std::int64_t>{0, 1}));
  const MlpLayer layer = checkpoint.layer(1);
  EXPECT_EQ(layer.dtype, GATEFOLD_DTYPE_BF16);
  EXPECT_EQ(layer.hidden_size, 48);
  EXPECT_EQ(layer.intermediate_size, 80);
  EXPECT_EQ(layer.activation.value().kind, GATEFOLD_ACTIVATION_GELU_TANH);
}

TEST(Generate, ShardedAndPacked) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  options.sharded = true;
  options.layout = Layout::gate_up();
  options.dtype = GATEFOLD_DTYPE_FP16;
  options.activation = Activation::swiglu_clamped(3.5F);
  generate_checkpoint(folder.path(), options);
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"config.json", "model-00001-of-00002.safetensors",
                                      "model-00002-of-00002.safetensors", "model.safetensors.index.json"}));
  const MlpLayer layer = Checkpoint(folder.path()).layer(1);
  EXPECT_EQ(layer.layout.kind(), GATEFOLD_LAYOUT_GATE_UP);
  EXPECT_EQ(layer.dtype, GATEFOLD_DTYPE_FP16);
  EXPECT_EQ(layer.activation.value().limit, 3.5F);
}

TEST(Generate, TheSeedDecidesEveryByte) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  generate_checkpoint(folder / "a", options);
  generate_checkpoint(folder / "b", options);
  options.seed = 1;
  generate_checkpoint(folder / "c", options);
  const std::string a = read_file(folder / "a/model.safetensors");
  EXPECT_EQ(a, read_file(folder / "b/model.safetensors"));
  EXPECT_NE(a, read_file(folder / "c/model.safetensors"));
}

TEST(Generate, BiasesBesideTheSameWeights) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  generate_checkpoint(folder / "without", options);
  options.mlp_bias = true;
  std::uint64_t announced = 0;
  options.progress = [&](std::uint64_t, std::uint64_t total) { announced = total; };
  generate_checkpoint(folder / "with", options);
  EXPECT_EQ(announced, 2U * (3 * 48 * 80 + 2 * 80 + 48) * 2);
  const Checkpoint with_file(folder / "with");
  EXPECT_EQ(with_file.config()->mlp_bias, true);
  const MlpLayer with = with_file.layer(1);
  const MlpLayer without = Checkpoint(folder / "without").layer(1);
  ASSERT_TRUE(with.gate_bias && with.up_bias && with.down_bias);
  EXPECT_FALSE(without.biases().any());
  EXPECT_TRUE(std::ranges::equal(with.gate.tensor.range(), without.gate.tensor.range()));
  EXPECT_TRUE(std::ranges::equal(with.down.tensor.range(), without.down.tensor.range()));
  EXPECT_FALSE(std::ranges::equal(with.gate_bias->tensor.range(), with.up_bias->tensor.range()));
  options.layout = Layout::gate_up();
  options.overwrite = true;
  options.sharded = true;
  generate_checkpoint(folder / "with", options);
  EXPECT_EQ(Checkpoint(folder / "with").layer(0).gate_bias->tensor.shape, (Shape{160}));
}

TEST(Generate, TensorsDifferFromEachOther) {
  const TemporaryFolder folder;
  generate_checkpoint(folder.path(), small());
  const Checkpoint checkpoint(folder.path());
  const MlpLayer first = checkpoint.layer(0);
  const MlpLayer second = checkpoint.layer(1);
  EXPECT_FALSE(std::ranges::equal(first.gate.tensor.range(), first.up->tensor.range()));
  EXPECT_FALSE(std::ranges::equal(first.gate.tensor.range(), second.gate.tensor.range()));
}

TEST(Generate, LeavesFullFoldersAlone) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  write_file(folder / "notes.txt", "mine");
  expect_input_error([&] { generate_checkpoint(folder.path(), options); }, {folder.path().string(), "not empty"});
  options.overwrite = true;
  options.sharded = true;
  generate_checkpoint(folder.path(), options);
  options.sharded = false;
  options.hidden_size = 32;
  generate_checkpoint(folder.path(), options);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"config.json", "model.safetensors", "notes.txt"}))
      << "the index and the shards of the old checkpoint would be read in place of the new one";
  EXPECT_EQ(Checkpoint(folder.path()).layer(0).hidden_size, 32);
}

// Other calls remove what programs that have ended left behind. The folder that is being replaced is no such thing.
TEST(Generate, ReplacesWhileOthersTidyUp) {
  const TemporaryFolder parent;
  GenerateOptions options = small();
  options.overwrite = true;
  generate_checkpoint(parent / "model", options);
  std::jthread others([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) remove_leftovers(parent.path());
  });
  for (options.seed = 1; options.seed <= 100; ++options.seed) {
    write_file(parent / "model/notes.txt", "mine");
    ASSERT_NO_THROW(generate_checkpoint(parent / "model", options));
    ASSERT_TRUE(std::filesystem::exists(parent / "model/notes.txt"));
  }
}

// A folder can't have two names, so one inside would have to move while somebody may look into it.
TEST(Generate, RefusesToReplaceNextToAFolder) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  options.overwrite = true;
  std::filesystem::create_directory(folder / "inside");
  generate_checkpoint(folder.path(), options);
  const std::string before = read_file(folder / "model.safetensors");
  options.seed = 1;
  expect_input_error([&] { generate_checkpoint(folder.path(), options); }, {"at once", "inside"});
  EXPECT_EQ(read_file(folder / "model.safetensors"), before);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"config.json", "inside", "model.safetensors"}));
}

TEST(Generate, AReplacedFolderKeepsItsRightsAndItsLink) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  options.overwrite = true;
  generate_checkpoint(folder / "model", options);
  std::filesystem::create_symlink("model", folder / "link");
  std::filesystem::permissions(folder / "model", std::filesystem::perms::owner_all);
  options.hidden_size = 32;
  generate_checkpoint(folder / "link", options);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(std::filesystem::status(folder / "model").permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(Checkpoint(folder / "model").layer(0).hidden_size, 32);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"link", "model"}));
}

TEST(Generate, RefusesBadOptions) {
  const TemporaryFolder folder;
  const auto expect_refused = [&](auto change, const std::vector<std::string>& parts) {
    GenerateOptions options = small();
    change(options);
    expect_input_error([&] { generate_checkpoint(folder / "new", options); }, parts);
    EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  };
  expect_refused([](GenerateOptions& o) { o.layers = 0; }, {"layers is 0"});
  expect_refused([](GenerateOptions& o) { o.hidden_size = -3; }, {"hidden_size is -3"});
  expect_refused([](GenerateOptions& o) { o.intermediate_size = 0; }, {"intermediate_size is 0"});
  expect_refused([](GenerateOptions& o) { o.hidden_size = std::int64_t{1} << 60; },
                 {"1152921504606846976", "overflow"});
  expect_refused([](GenerateOptions& o) { o.layout = Layout::interleaved_gate_up(8); }, {"layout"});
  write_file(folder / "file", "");
  expect_input_error([&] { generate_checkpoint(folder / "file", small()); }, {"file", "cannot create the folder"});
}

TEST(Generate, RefusesWhatTheDiskCannotHold) {
  const TemporaryFolder folder;
  GenerateOptions options = small();
  options.layers = 1'000'000'000'000;
  expect_input_error([&] { generate_checkpoint(folder.path(), options); }, {"bytes", "are free"});
  EXPECT_TRUE(folder.names().empty());
}

std::vector<float> uniform_floats(std::uint64_t tensor, std::int64_t fan_in, std::size_t count) {
  std::vector<float> values(count);
  fill_uniform(tensor_stream(0, tensor, fan_in), GATEFOLD_DTYPE_FP32, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(RandomWeights, AreUniformWithinTheBoundOfTorchLinear) {
  constexpr std::size_t count = 1 << 20;
  const double bound = 1.0 / std::sqrt(576.0);
  double sum = 0;
  double squares = 0;
  std::vector<int> bins(16);
  for (const float value : uniform_floats(3, 576, count)) {
    ASSERT_LT(std::abs(value), bound);
    ASSERT_NE(value, 0.0F);
    sum += value;
    squares += static_cast<double>(value) * value;
    ++bins[static_cast<std::size_t>((value / bound + 1.0) * 8.0)];
  }
  // Uniform: mean 0, variance bound^2 / 3. Five standard deviations of each estimate.
  const double n = count;
  EXPECT_LT(std::abs(sum / n), 5.0 * bound / std::sqrt(3.0 * n));
  EXPECT_LT(std::abs(squares / n / (bound * bound) - 1.0 / 3.0), 5.0 * std::sqrt(4.0 / 45.0 / n));
  for (const int bin : bins) EXPECT_LT(std::abs(bin - n / 16), 5.0 * std::sqrt(n / 16));
}

TEST(RandomWeights, StreamsOfTensorsAreUncorrelated) {
  const auto a = uniform_floats(0, 1, 1 << 16);
  const auto b = uniform_floats(1, 1, 1 << 16);
  double products = 0;
  for (std::size_t i = 0; i < a.size(); ++i) products += static_cast<double>(a[i]) * b[i];
  const double n = static_cast<double>(a.size());
  EXPECT_LT(std::abs(products / n), 5.0 / (3.0 * std::sqrt(n)));
}

TEST(RandomWeights, AnyPartCanBeMadeAlone) {
  const UniformStream stream = tensor_stream(5, 2, 64);
  std::vector<std::byte> whole(2000);
  fill_uniform(stream, GATEFOLD_DTYPE_BF16, 0, whole);
  std::vector<std::byte> part(500);
  fill_uniform(stream, GATEFOLD_DTYPE_BF16, 300, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 600));
}

double fp16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// |rounded - exact| is at most half the distance of neighbours: 2^-8 or 2^-11 of the value, or 2^-25 for fp16
// subnormals, which a small bound provokes.
TEST(RandomWeights, RoundToNearest) {
  for (const std::int64_t fan_in : {1LL, 576LL, 1LL << 30}) {
    const auto exact = uniform_floats(9, fan_in, 1 << 16);
    std::vector<std::uint16_t> bf16(exact.size());
    std::vector<std::uint16_t> fp16(exact.size());
    const UniformStream stream = tensor_stream(0, 9, fan_in);
    fill_uniform(stream, GATEFOLD_DTYPE_BF16, 0, std::as_writable_bytes(std::span(bf16)));
    fill_uniform(stream, GATEFOLD_DTYPE_FP16, 0, std::as_writable_bytes(std::span(fp16)));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double value = exact[i];
      ASSERT_LE(std::abs(bf16_value(bf16[i]) - value), std::ldexp(1.0, std::ilogb(value) - 8)) << value;
      const int place = std::max(std::ilogb(value), -14) - 11;
      ASSERT_LE(std::abs(fp16_value(fp16[i]) - value), std::ldexp(1.0, place)) << value;
    }
  }
}

}  // namespace
}  // namespace gatefold::checkpoint::test
