#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "gatefold/gatefold.hpp"

namespace gatefold::checkpoint {

// What config.json says about the MLP. Whatever it does not say is empty.
struct ModelConfig {
  std::filesystem::path path;
  std::string model_type;
  std::optional<Activation> activation;
  std::optional<std::int64_t> hidden_size;
  std::optional<std::int64_t> intermediate_size;
  std::optional<bool> mlp_bias;
};

// Throws InputError. Multimodal models are read from their text_config.
ModelConfig read_config(const std::filesystem::path& path);

// By the names that config.json files use ("gelu_pytorch_tanh") and by Gatefold's own ("gelu_tanh").
std::optional<Activation> find_activation(const std::string& name);

// The name that config.json uses.
const char* config_activation_name(gatefold_activation kind);

}  // namespace gatefold::checkpoint
