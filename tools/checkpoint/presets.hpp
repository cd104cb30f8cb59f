#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gatefold/gatefold.hpp"

namespace gatefold::checkpoint {

// The shape of a published model, from models.json. What that file does not say is empty.
struct Preset {
  std::string name;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_layers = 0;
  Activation activation;
  std::optional<std::int64_t> num_attention_heads;
  std::optional<std::int64_t> num_kv_heads;
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> num_experts;
  std::optional<std::int64_t> num_experts_per_token;
  std::optional<std::int64_t> moe_intermediate_size;  // of one expert, where intermediate_size is another's
};

// All of them, in the file's order.
const std::vector<Preset>& presets();

// Throws InputError, with the names that come close.
const Preset& find_preset(std::string_view name);

}  // namespace gatefold::checkpoint
