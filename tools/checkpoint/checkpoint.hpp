#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/config.hpp"
#include "checkpoint/safetensors.hpp"
#include "gatefold/gatefold.hpp"

namespace gatefold::checkpoint {

// A tensor together with the mapping that it lives in.
struct LayerTensor {
  std::shared_ptr<const SafetensorsFile> file;
  Tensor tensor;

  void release() const { file->release(tensor); }
  void will_need() const { file->will_need(tensor); }
};

// One layer's MLP, where it lies in the files.
struct MlpLayer {
  std::int64_t index = 0;
  gatefold_dtype dtype{};
  Layout layout = Layout::separate();    // separate, or gate_up for a gate_up_proj
  std::int64_t hidden_size = 0;          // D
  std::int64_t intermediate_size = 0;    // F
  std::optional<Activation> activation;  // empty if there is no config.json, or it does not say
  LayerTensor gate;                      // [F, D]; gate_up: both halves, [2F, D]
  std::optional<LayerTensor> up;         // [F, D]; gate_up: empty
  LayerTensor down;                      // [D, F]

  void release() const;
  void will_need() const;
};

// A Hugging Face style checkpoint: a .safetensors file, or a folder with model.safetensors.index.json or
// model.safetensors. Opening it reads no tensor and, with an index, no shard.
class Checkpoint {
 public:
  explicit Checkpoint(const std::filesystem::path& path);  // throws InputError

  const std::filesystem::path& path() const { return path_; }
  const std::optional<ModelConfig>& config() const { return config_; }

  // The layers with an MLP whose weights have the names that layer() looks for, in order.
  std::vector<std::int64_t> layers() const;

  // Opens the files that hold the layer's tensors, and checks them against each other and against config.json.
  // Throws InputError.
  MlpLayer layer(std::int64_t index) const;

 private:
  void add_file(const std::filesystem::path& file);
  void add_index(const std::filesystem::path& index);
  LayerTensor tensor(const std::string& name) const;

  std::filesystem::path path_;
  std::optional<ModelConfig> config_;
  std::map<std::string, std::filesystem::path, std::less<>> files_;  // tensor name -> the file that holds it
  mutable std::map<std::filesystem::path, std::shared_ptr<const SafetensorsFile>> open_;
};

}  // namespace gatefold::checkpoint
