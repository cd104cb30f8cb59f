#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/config.hpp"
#include "checkpoint/mlp_layer.hpp"
#include "checkpoint/safetensors.hpp"

namespace gatefold::checkpoint {

// A Hugging Face style checkpoint: a .safetensors file, or a folder with model.safetensors.index.json or
// model.safetensors. Opening it reads no tensor and, with an index, no shard. For one thread at a time.
class Checkpoint {
 public:
  explicit Checkpoint(const std::filesystem::path& path);  // throws InputError

  const std::filesystem::path& path() const { return path_; }
  const std::optional<ModelConfig>& config() const { return config_; }
  std::vector<std::filesystem::path> files() const;  // all that it consists of, opened or not

  // The layers with an MLP whose weights have the names that layer() looks for, in order.
  std::vector<std::int64_t> layers() const;

  // Opens the files that hold the layer's tensors, and checks them against each other and against config.json.
  // Throws InputError.
  MlpLayer layer(std::int64_t index) const;

 private:
  void add_file(const std::filesystem::path& file);
  void add_index(const std::filesystem::path& index);
  std::string find_mlp(std::int64_t index) const;
  LayerTensor tensor(const std::string& name) const;
  std::optional<LayerTensor> tensor_if_there(const std::string& name) const;
  void expect_no_other_bias(const std::string& mlp, bool packed) const;

  std::filesystem::path path_;
  std::vector<std::filesystem::path> described_by_;  // the index, config.json
  std::optional<ModelConfig> config_;
  std::vector<std::filesystem::path> shards_;
  std::unordered_map<std::string, std::shared_ptr<const std::filesystem::path>> files_;  // tensor name -> who holds it
  mutable std::map<std::filesystem::path, std::shared_ptr<const SafetensorsFile>> open_;
};

}  // namespace gatefold::checkpoint
