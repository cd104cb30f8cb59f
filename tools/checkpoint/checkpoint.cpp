#include "checkpoint/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>
#include <string_view>

#include "checkpoint/input_error.hpp"
#include "checkpoint/json_text.hpp"
#include "checkpoint/mlp_layer.hpp"

namespace gatefold::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What stands before "layers.N." in the checkpoints of plain and of multimodal models.
constexpr std::array<std::string_view, 5> prefixes{"model.", "", "language_model.model.", "model.language_model.",
                                                   "language_model."};
constexpr std::array<std::string_view, 4> projections{"gate_proj", "up_proj", "gate_up_proj", "down_proj"};

std::string mlp_prefix(std::string_view prefix, std::int64_t layer) {
  return std::string(prefix) + "layers." + std::to_string(layer) + ".mlp.";
}

std::optional<std::string_view> without_prefix(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
}

// The layer that a name like layers.12.mlp.up_proj.weight (behind its prefix) belongs to.
std::optional<std::int64_t> layer_of(std::string_view name) {
  const auto rest = without_prefix(name, "layers.");
  if (!rest) return std::nullopt;
  std::int64_t layer = 0;
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), layer);
  if (error != std::errc{} || layer < 0) return std::nullopt;
  const std::string_view tail = rest->substr(static_cast<std::size_t>(end - rest->data()));
  const bool known = std::ranges::any_of(projections, [tail](std::string_view projection) {
    return tail == ".mlp." + std::string(projection) + ".weight";
  });
  return known ? std::optional(layer) : std::nullopt;
}

// "0-29, 31".
std::string ranges(const std::vector<std::int64_t>& sorted) {
  std::string text;
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(sorted[first]);
    if (last > first) text += "-" + std::to_string(sorted[last]);
    first = last + 1;
  }
  return text;
}

// A shard's name comes from a file that nobody vouches for: it must not lead out of the folder.
fs::path shard_path(const fs::path& index, const std::string& tensor, const json& shard) {
  const std::string name = shard.is_string() ? shard.get<std::string>() : "";
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw_input_error(index.string(), ": tensor ", tensor, ": ", shard.dump(-1, ' ', true), " is no file name");
  }
  return index.parent_path() / name;
}

// What may not be looked at is not the same as what is not there.
fs::file_status status_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) throw_input_error(path.string(), ": ", error.message());
  return status;
}

}  // namespace

Checkpoint::Checkpoint(const fs::path& path) : path_(path) {
  constexpr std::string_view index_name = "model.safetensors.index.json";
  constexpr std::string_view single_name = "model.safetensors";
  const fs::file_status status = status_of(path);
  if (!fs::exists(status)) throw_input_error(path.string(), ": no such file or folder");
  const bool folder = fs::is_directory(status);
  if (!folder) {
    path.extension() == ".json" ? add_index(path) : add_file(path);
  } else if (fs::exists(status_of(path / index_name))) {
    add_index(path / index_name);
  } else if (fs::exists(status_of(path / single_name))) {
    add_file(path / single_name);
  } else {
    throw_input_error(path.string(), ": holds neither ", index_name, " nor ", single_name);
  }
  const fs::path config = (folder ? path : path.parent_path()) / "config.json";
  if (!fs::exists(status_of(config))) return;
  config_ = read_config(config);
  described_by_.push_back(config);
}

void Checkpoint::add_file(const fs::path& path) {
  auto file = std::make_shared<const SafetensorsFile>(path);
  const auto shared = std::make_shared<const fs::path>(path);
  files_.reserve(file->tensors().size());
  for (const Tensor& tensor : file->tensors()) files_.emplace(tensor.name, shared);
  open_.emplace(path, std::move(file));
  shards_.push_back(path);
}

void Checkpoint::add_index(const fs::path& path) {
  const json index = read_json_object(path);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) throw_input_error(path.string(), ": no object weight_map");
  std::map<fs::path, std::shared_ptr<const fs::path>> shards;
  for (const auto& [tensor, shard] : map->items()) {
    const fs::path file = shard_path(path, tensor, shard);
    auto& shared = shards[file];
    if (!shared) {
      shared = std::make_shared<const fs::path>(file);
      shards_.push_back(file);
    }
    files_.emplace(tensor, shared);
  }
  described_by_.push_back(path);
}

std::vector<fs::path> Checkpoint::files() const {
  std::set<fs::path> files(described_by_.begin(), described_by_.end());
  files.insert(shards_.begin(), shards_.end());
  return {files.begin(), files.end()};
}

LayerTensor Checkpoint::tensor(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) throw_input_error(path_.string(), ": no tensor ", name);
  auto& file = open_[*found->second];
  if (!file) file = std::make_shared<const SafetensorsFile>(*found->second);
  return {file, file->at(name)};
}

std::optional<LayerTensor> Checkpoint::tensor_if_there(const std::string& name) const {
  return files_.contains(name) ? std::optional(tensor(name)) : std::nullopt;
}

// A bias of a projection that isn't used would be missed silently.
void Checkpoint::expect_no_other_bias(const std::string& mlp, bool packed) const {
  constexpr std::array<std::string_view, 2> apart{"gate_proj", "up_proj"};
  constexpr std::array<std::string_view, 1> together{"gate_up_proj"};
  for (const std::string_view projection : packed ? std::span<const std::string_view>(apart) : together) {
    const std::string name = mlp + std::string(projection);
    if (!files_.contains(name + ".bias")) continue;
    throw_input_error(path_.string(), ": tensor ", name, ".bias belongs to ", name,
                      ".weight, but the layer is read from ", mlp, packed ? "gate_up_proj.weight" : "gate_proj.weight");
  }
}

std::vector<std::int64_t> Checkpoint::layers() const {
  std::set<std::int64_t> layers;
  for (const auto& [name, file] : files_) {
    for (const std::string_view prefix : prefixes) {
      const auto rest = without_prefix(name, prefix);
      if (const auto layer = rest ? layer_of(*rest) : std::nullopt) layers.insert(*layer);
    }
  }
  return {layers.begin(), layers.end()};
}

// The names' common part, "model.layers.N.mlp.".
std::string Checkpoint::find_mlp(std::int64_t index) const {
  for (const std::string_view prefix : prefixes) {
    std::string mlp = mlp_prefix(prefix, index);
    for (const std::string_view projection : projections) {
      if (files_.contains(mlp + std::string(projection) + ".weight")) return mlp;
    }
  }
  const std::string there = ranges(layers());
  throw_input_error(path_.string(), ": layer ", index, " has no MLP weights named ", mlp_prefix("model.", index),
                    "*_proj.weight; ", there.empty() ? "no layer has" : "the layers that have are " + there);
}

MlpLayer Checkpoint::layer(std::int64_t index) const {
  const std::string mlp = find_mlp(index);
  const bool packed = files_.contains(mlp + "gate_up_proj.weight") && !files_.contains(mlp + "gate_proj.weight");
  MlpLayer layer;
  layer.index = index;
  layer.layout = packed ? Layout::gate_up() : Layout::separate();
  layer.gate = tensor(mlp + (packed ? "gate_up_proj.weight" : "gate_proj.weight"));
  if (!packed) layer.up = tensor(mlp + "up_proj.weight");
  layer.down = tensor(mlp + "down_proj.weight");
  expect_no_other_bias(mlp, packed);
  layer.gate_bias = tensor_if_there(mlp + (packed ? "gate_up_proj.bias" : "gate_proj.bias"));
  if (!packed) layer.up_bias = tensor_if_there(mlp + "up_proj.bias");
  layer.down_bias = tensor_if_there(mlp + "down_proj.bias");
  complete_layer(layer, config_);
  return layer;
}

}  // namespace gatefold::checkpoint
