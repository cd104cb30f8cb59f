// Folders: which files are looked for, shards, and config.json next to the weights.
#include "checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>

#include "checkpoint/files.hpp"

namespace gatefold::checkpoint::test {
namespace {

constexpr std::int64_t D = 6;
constexpr std::int64_t F = 10;
constexpr auto bf16 = GATEFOLD_DTYPE_BF16;

std::string weight(int layer, const std::string& projection) {
  return "model.layers." + std::to_string(layer) + ".mlp." + projection + ".weight";
}

// Layer 0 in shard a but for down_proj, which is in shard b with layer 1.
class Folder : public testing::Test {
 protected:
  void SetUp() override {
    write_tensors(folder_ / "a.safetensors",
                  {{weight(0, "gate_proj"), bf16, {F, D}}, {weight(0, "up_proj"), bf16, {F, D}}});
    write_tensors(folder_ / "b.safetensors", {{weight(0, "down_proj"), bf16, {D, F}},
                                              {weight(1, "gate_up_proj"), bf16, {2 * F, D}},
                                              {weight(1, "down_proj"), bf16, {D, F}}});
    write_index({});
  }

  // The right index, with some tensors elsewhere.
  void write_index(const std::map<std::string, std::string>& changes) {
    std::map<std::string, std::string> map{{weight(0, "gate_proj"), R"("a.safetensors")"},
                                           {weight(0, "up_proj"), R"("a.safetensors")"},
                                           {weight(0, "down_proj"), R"("b.safetensors")"},
                                           {weight(1, "gate_up_proj"), R"("b.safetensors")"},
                                           {weight(1, "down_proj"), R"("b.safetensors")"}};
    for (const auto& [tensor, file] : changes) map[tensor] = file;
    std::string text;
    for (const auto& [tensor, file] : map) text += (text.empty() ? "" : ",") + ('"' + tensor + "\":" + file);
    write_file(index(), R"({"metadata":{},"weight_map":{)" + text + "}}");
  }

  std::filesystem::path index() const { return folder_ / "model.safetensors.index.json"; }

  void expect_refused(const std::vector<std::string>& parts, std::int64_t layer = 0) {
    expect_input_error([&] { (void)Checkpoint(folder_.path()).layer(layer); }, parts);
  }

  TemporaryFolder folder_;
};

TEST_F(Folder, ShardedLayers) {
  const Checkpoint checkpoint(folder_.path());
  EXPECT_EQ(checkpoint.layers(), (std::vector<std::int64_t>{0, 1}));
  const MlpLayer layer = checkpoint.layer(0);
  EXPECT_EQ(layer.gate.file, layer.up->file) << "a shard is opened once";
  EXPECT_NE(layer.gate.file, layer.down.file);
  EXPECT_EQ(checkpoint.layer(1).layout.kind(), GATEFOLD_LAYOUT_GATE_UP);
  EXPECT_EQ(Checkpoint(index()).layer(1).hidden_size, D) << "the index itself may be named, too";
}

TEST_F(Folder, OnlyTheLayersOwnShardsAreOpened) {
  write_file(folder_ / "a.safetensors", "broken");
  EXPECT_NO_THROW((void)Checkpoint(folder_.path()).layer(1));
  expect_refused({"a.safetensors", "6 bytes"});
}

TEST_F(Folder, AMissingShard) {
  std::filesystem::remove(folder_ / "b.safetensors");
  expect_refused({"b.safetensors", "No such file"});
}

TEST_F(Folder, ATensorThatTheShardDoesNotHold) {
  write_index({{weight(0, "down_proj"), R"("a.safetensors")"}});
  expect_refused({"a.safetensors", "no tensor " + weight(0, "down_proj"), weight(0, "gate_proj")});
}

TEST_F(Folder, AnIndexThatLeadsOutOfTheFolder) {
  for (const char* shard :
       {R"("../b.safetensors")", R"("/etc/passwd")", R"("..")", R"(".")", R"("")", "1", "null", R"("b\u0000c")"}) {
    write_index({{weight(0, "down_proj"), shard}});
    expect_refused({"index.json", weight(0, "down_proj"), "no file name"});
  }
}

TEST_F(Folder, BadIndexes) {
  write_file(index(), "{");
  expect_refused({"index.json", "not valid JSON"});
  write_file(index(), "[]");
  expect_refused({"index.json", "expected a JSON object, found array"});
  write_file(index(), R"({"weight_map":[]})");
  expect_refused({"index.json", "weight_map"});
  write_file(index(), R"({"weight_map":{"a":"b","a":"c"}})");
  expect_refused({"index.json", "duplicate name \"a\""});
}

TEST_F(Folder, SingleFile) {
  std::filesystem::remove(index());
  expect_refused({folder_.path().string(), "neither model.safetensors.index.json nor model.safetensors"});
  std::filesystem::rename(folder_ / "b.safetensors", folder_ / "model.safetensors");
  EXPECT_EQ(Checkpoint(folder_.path()).layer(1).intermediate_size, F);
}

TEST_F(Folder, NoFolderOrFile) {
  expect_input_error([&] { Checkpoint(folder_ / "missing"); }, {"missing", "no such file or folder"});
  const TemporaryFolder empty;
  expect_input_error([&] { Checkpoint(empty.path()); }, {empty.path().string(), "neither"});
}

TEST_F(Folder, ConfigIsHeldAgainstTheTensors) {
  write_file(folder_ / "config.json", R"({"hidden_act":"gelu_pytorch_tanh","hidden_size":6,"intermediate_size":10})");
  const auto layer = Checkpoint(folder_.path()).layer(0);
  ASSERT_TRUE(layer.activation.has_value());
  EXPECT_EQ(layer.activation->kind, GATEFOLD_ACTIVATION_GELU_TANH);
  EXPECT_TRUE(Checkpoint(folder_ / "b.safetensors").layer(1).activation.has_value()) << "config.json lies beside it";
  write_file(folder_ / "config.json", R"({"hidden_size":7})");
  expect_refused({"config.json", "hidden_size is 7", weight(0, "gate_proj"), "makes it 6"});
  write_file(folder_ / "config.json", R"({"intermediate_size":20})");
  expect_refused({"config.json", "intermediate_size is 20", weight(1, "gate_up_proj"), "makes it 10"}, 1);
  write_file(folder_ / "config.json", "{]");
  expect_refused({"config.json", "not valid JSON"});
}

}  // namespace
}  // namespace gatefold::checkpoint::test
