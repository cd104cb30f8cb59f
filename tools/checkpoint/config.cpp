#include "checkpoint/config.hpp"

#include <limits>

#include "checkpoint/input_error.hpp"
#include "checkpoint/json_text.hpp"
#include "gatefold/names.h"

namespace gatefold::checkpoint {
namespace {

using nlohmann::json;

struct NamedActivation {
  const char* name;
  Activation activation;
};

// Those names of transformers' ACT2FN table that aren't Gatefold's own.
constexpr NamedActivation other_names[] = {
    {"swish", Activation::silu()},
    {"gelu_pytorch_tanh", Activation::gelu_tanh()},
    {"gelu_new", Activation::gelu_tanh()},
    {"gelu_fast", Activation::gelu_tanh()},
    {"gelu_accurate", Activation::gelu_tanh()},
    {"gelu", Activation::gelu_erf()},
    {"gelu_python", Activation::gelu_erf()},
    {"linear", Activation::identity()},
};

// Null and missing mean the same in config.json files.
const json* find(const json& config, const char* key) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> find_text(const json& config, const char* key, const std::string& file) {
  const json* value = find(config, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw_input_error(file, ": ", key, " is ", value->dump(-1, ' ', true), ", not a string");
  return value->get<std::string>();
}

std::optional<std::int64_t> find_size(const json& config, const char* key, const std::string& file) {
  const json* value = find(config, key);
  if (value == nullptr || value->is_array()) return std::nullopt;  // some models list a size per layer
  const bool whole = value->is_number_unsigned() &&
                     value->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!whole) throw_input_error(file, ": ", key, " is ", value->dump(-1, ' ', true), ", not a size");
  return value->get<std::int64_t>();
}

std::optional<bool> find_flag(const json& config, const char* key, const std::string& file) {
  const json* value = find(config, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean())
    throw_input_error(file, ": ", key, " is ", value->dump(-1, ' ', true), ", not true or false");
  return value->get<bool>();
}

// Models whose code has a default that their config.json may leave out.
std::optional<Activation> default_activation(const std::string& model_type) {
  if (model_type.starts_with("gemma")) return Activation::gelu_tanh();
  for (const char* family : {"llama", "mistral", "mixtral", "qwen2", "qwen3", "phi3", "olmo", "deepseek", "smollm"}) {
    if (model_type.starts_with(family)) return Activation::silu();
  }
  return std::nullopt;
}

Activation clamped(const json& config, const std::string& file) {
  const json* limit = find(config, "swiglu_limit");
  if (limit == nullptr) return Activation::swiglu_clamped();
  if (!limit->is_number() || !(limit->get<double>() > 0)) {
    throw_input_error(file, ": swiglu_limit is ", limit->dump(-1, ' ', true), ", not a positive number");
  }
  return Activation::swiglu_clamped(limit->get<float>());
}

std::optional<Activation> read_activation(const json& config, const std::string& model_type, const std::string& file) {
  // gpt-oss says "silu" and means its clamped form.
  if (model_type == "gpt_oss") return clamped(config, file);
  // Gemma's files have both keys, of which hidden_activation is the right one. The oldest have hidden_act "gelu" only,
  // which the model's code reads as the tanh form.
  const auto precise = find_text(config, "hidden_activation", file);
  const auto name = precise ? precise : find_text(config, "hidden_act", file);
  if (!name) return default_activation(model_type);
  if (!precise && *name == "gelu" && model_type.starts_with("gemma")) return Activation::gelu_tanh();
  const auto activation = find_activation(*name);
  if (!activation) throw_input_error(file, ": activation \"", *name, "\" is none that Gatefold knows");
  return activation->kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED ? clamped(config, file) : activation;
}

}  // namespace

ModelConfig read_config(const std::filesystem::path& path) {
  const std::string file = path.string();
  const json whole = read_json_object(path);
  const json* text_config = find(whole, "text_config");
  if (text_config != nullptr && !text_config->is_object()) {
    throw_input_error(file, ": text_config is ", text_config->type_name(), ", not an object");
  }
  const json& config = text_config != nullptr ? *text_config : whole;
  ModelConfig result;
  result.path = path;
  const auto own_type = find_text(config, "model_type", file);
  result.model_type = (own_type ? own_type : find_text(whole, "model_type", file)).value_or("");
  result.activation = read_activation(config, result.model_type, file);
  result.hidden_size = find_size(config, "hidden_size", file);
  result.intermediate_size = find_size(config, "intermediate_size", file);
  result.mlp_bias = find_flag(config, "mlp_bias", file);
  return result;
}

std::optional<Activation> find_activation(const std::string& name) {
  for (int kind = GATEFOLD_ACTIVATION_SILU; kind < GATEFOLD_ACTIVATION_SWIGLU_CLAMPED; ++kind) {
    const auto activation = static_cast<gatefold_activation>(kind);
    if (name == gatefold_name_of_activation(activation)) return Activation{activation};
  }
  const Activation clamped_form = Activation::swiglu_clamped();
  if (name == gatefold_name_of_activation(clamped_form.kind)) return clamped_form;
  for (const NamedActivation& entry : other_names) {
    if (name == entry.name) return entry.activation;
  }
  return std::nullopt;
}

const char* config_activation_name(gatefold_activation kind) {
  switch (kind) {
    case GATEFOLD_ACTIVATION_GELU_TANH: return "gelu_pytorch_tanh";
    case GATEFOLD_ACTIVATION_GELU_ERF: return "gelu";
    case GATEFOLD_ACTIVATION_IDENTITY: return "linear";
    default: return gatefold_name_of_activation(kind);
  }
}

}  // namespace gatefold::checkpoint
