#include "checkpoint/generate.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/config.hpp"
#include "checkpoint/folder_switch.hpp"
#include "checkpoint/input_error.hpp"
#include "checkpoint/random_weights.hpp"
#include "checkpoint/safetensors_writer.hpp"

namespace gatefold::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* config_name = "config.json";
constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

struct WeightSpec {
  TensorSpec tensor;
  UniformStream stream;
};

// The weights of one layer, in the order in which they are written.
std::vector<WeightSpec> layer_weights(const GenerateOptions& options, std::int64_t layer) {
  const std::string mlp = "model.layers." + std::to_string(layer) + ".mlp.";
  const ElementType type = element_type(options.dtype);
  const std::int64_t D = options.hidden_size;
  const std::int64_t F = options.intermediate_size;
  std::vector<TensorSpec> specs;
  if (options.layout.packed()) {
    specs.push_back({mlp + "gate_up_proj.weight", type, {2 * F, D}});
  } else {
    specs.push_back({mlp + "gate_proj.weight", type, {F, D}});
    specs.push_back({mlp + "up_proj.weight", type, {F, D}});
  }
  specs.push_back({mlp + "down_proj.weight", type, {D, F}});
  std::vector<WeightSpec> weights;
  const auto draw = [&](TensorSpec spec, std::uint64_t tensor, std::int64_t fan_in) {
    weights.push_back({std::move(spec), tensor_stream(options.seed, tensor, fan_in)});
  };
  const auto first = static_cast<std::uint64_t>(layer) * 3;
  for (std::size_t i = 0; i < specs.size(); ++i) draw(specs[i], first + i, specs[i].shape[1]);
  if (!options.mlp_bias) return weights;
  // Numbered from the end of the range, so that the weights are the same with and without them.
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string weight = specs[i].name;
    const std::string name = weight.substr(0, weight.size() - std::string_view("weight").size()) + "bias";
    draw({name, type, {specs[i].shape[0]}}, ~(first + i), specs[i].shape[1]);
  }
  return weights;
}

void check_options(const fs::path& folder, const GenerateOptions& options) {
  const auto check = [&folder](const char* name, std::int64_t value) {
    if (value < 1) throw_input_error(folder.string(), ": ", name, " is ", value, ", must be at least 1");
  };
  check("hidden_size", options.hidden_size);
  check("intermediate_size", options.intermediate_size);
  check("layers", options.layers);
  if (options.layout.kind() != GATEFOLD_LAYOUT_SEPARATE && options.layout.kind() != GATEFOLD_LAYOUT_GATE_UP) {
    throw_input_error(folder.string(), ": a checkpoint stores gate and up as separate or gate_up, not as layout ",
                      static_cast<int>(options.layout.kind()));
  }
}

// The bytes of all weights, checked against overflow.
std::uint64_t total_bytes(const fs::path& folder, const GenerateOptions& options) {
  const ElementType type = element_type(options.dtype);
  // 3 * L * F * D elements, more than the biases' 2 * F + D are.
  const auto bytes = tensor_bytes(type, {3, options.layers, options.intermediate_size, options.hidden_size});
  std::uint64_t total = bytes.value_or(0);
  if (bytes && options.mlp_bias) {
    const auto biases = tensor_bytes(type, {options.layers, 2 * options.intermediate_size + options.hidden_size});
    if (biases && !__builtin_add_overflow(*bytes, *biases, &total)) return total;
  }
  if (!bytes || options.mlp_bias) {
    throw_input_error(folder.string(), ": ", options.layers, " layers of ", options.intermediate_size, " x ",
                      options.hidden_size, " overflow");
  }
  return total;
}

void require_space(const FolderSwitch& target, std::uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(target.workplace(), error);
  if (!error && space.available < bytes) {
    throw_input_error(target.folder().string(), ": the weights take ", bytes, " bytes, but only ", space.available,
                      " are free");
  }
}

// Fills pieces with all threads and writes them in order.
class Generator {
 public:
  explicit Generator(const GenerateOptions& options, std::uint64_t total)
      : options_(options), total_(total), threads_(std::max(1U, std::thread::hardware_concurrency())) {}

  AtomicFile write_file(const FolderSwitch& target, const std::string& name, const std::vector<WeightSpec>& weights) {
    std::vector<TensorSpec> specs;
    specs.reserve(weights.size());
    for (const WeightSpec& weight : weights) specs.push_back(weight.tensor);
    SafetensorsWriter writer((target.folder() / name).string(), target.new_file(name), specs,
                             Metadata{{"format", "pt"}});
    for (const WeightSpec& weight : weights) append(writer, weight);
    return std::move(writer).finish();
  }

 private:
  static constexpr std::size_t bytes_per_thread = std::size_t{1} << 20;

  void append(SafetensorsWriter& writer, const WeightSpec& weight) {
    const auto element_size = static_cast<std::uint64_t>(weight.tensor.type.bits / 8);
    const std::uint64_t bytes = *tensor_bytes(weight.tensor.type, weight.tensor.shape);  // as total_bytes has checked
    for (std::uint64_t begin = 0; begin < bytes; begin += buffer_.size()) {
      buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes - begin, bytes_per_thread * threads_)));
      fill_buffer(weight.stream, begin / element_size, element_size);
      writer.append(buffer_);
      done_ += buffer_.size();
      if (options_.progress) options_.progress(done_, total_);
    }
  }

  void fill_buffer(const UniformStream& stream, std::uint64_t first, std::uint64_t element_size) {
    std::vector<std::jthread> threads;
    for (std::size_t begin = 0; begin < buffer_.size(); begin += bytes_per_thread) {
      const auto part = std::span(buffer_).subspan(begin, std::min(bytes_per_thread, buffer_.size() - begin));
      const std::uint64_t part_first = first + begin / element_size;
      threads.emplace_back([=, dtype = options_.dtype] { fill_uniform(stream, dtype, part_first, part); });
    }
  }

  const GenerateOptions& options_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::size_t threads_;
  std::vector<std::byte> buffer_;
};

std::string five_digits(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

std::string shard_name(std::int64_t shard, std::int64_t shards) {
  return "model-" + five_digits(shard + 1) + "-of-" + five_digits(shards) + ".safetensors";
}

void write_text(FolderSwitch& target, const std::string& name, const ordered_json& json) {
  AtomicFile file = target.new_file(name);
  file.write(json.dump(2) + "\n");
  file.flush();
  target.add(name, std::move(file));
}

// The index comes last: only with it the shards are a checkpoint.
void write_shards(FolderSwitch& target, const GenerateOptions& options, std::uint64_t total, Generator& generator) {
  ordered_json weight_map = ordered_json::object();
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string name = shard_name(layer, options.layers);
    const std::vector<WeightSpec> weights = layer_weights(options, layer);
    target.add(name, generator.write_file(target, name, weights));
    for (const WeightSpec& weight : weights) weight_map[weight.tensor.name] = name;
  }
  write_text(target, index_name, {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}});
}

void write_single(FolderSwitch& target, const GenerateOptions& options, Generator& generator) {
  std::vector<WeightSpec> weights;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    std::ranges::move(layer_weights(options, layer), std::back_inserter(weights));
  }
  target.add(single_name, generator.write_file(target, single_name, weights));
}

void write_config(FolderSwitch& target, const GenerateOptions& options) {
  const char* dtype = options.dtype == GATEFOLD_DTYPE_FP32   ? "float32"
                      : options.dtype == GATEFOLD_DTYPE_FP16 ? "float16"
                                                             : "bfloat16";
  ordered_json config{
      {"model_type", "gatefold_mlp"},        {"hidden_act", config_activation_name(options.activation.kind)},
      {"hidden_size", options.hidden_size},  {"intermediate_size", options.intermediate_size},
      {"num_hidden_layers", options.layers}, {"torch_dtype", dtype}};
  if (options.mlp_bias) config["mlp_bias"] = true;
  if (options.activation.kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) config["swiglu_limit"] = options.activation.limit;
  write_text(target, config_name, config);
}

// What an overwritten checkpoint consists of: it would be read in place of the new one, or lie about unused.
bool is_checkpoint_file(const std::string& name) {
  return name == config_name || name == index_name || name == single_name ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

}  // namespace

void generate_checkpoint(const fs::path& folder, const GenerateOptions& options) {
  check_options(folder, options);
  const std::uint64_t total = total_bytes(folder, options);
  FolderSwitch target(folder, is_checkpoint_file);
  if (!options.overwrite && !target.is_empty()) throw_input_error(folder.string(), ": the folder is not empty");
  require_space(target, total);
  Generator generator(options, total);
  write_config(target, options);
  options.sharded ? write_shards(target, options, total, generator) : write_single(target, options, generator);
  target.commit();
}

}  // namespace gatefold::checkpoint
