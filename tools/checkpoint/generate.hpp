#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "gatefold/gatefold.hpp"

namespace gatefold::checkpoint {

struct GenerateOptions {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t layers = 1;
  Activation activation = Activation::silu();
  gatefold_dtype dtype = GATEFOLD_DTYPE_BF16;
  Layout layout = Layout::separate();  // or Layout::gate_up(): one gate_up_proj
  bool mlp_bias = false;               // a bias beside each weight
  bool sharded = false;                // one file per layer and an index, instead of one file
  bool overwrite = false;              // false: a folder that holds anything is an error
  std::uint64_t seed = 0;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes; may be empty
};

// Writes a Hugging Face style checkpoint that has nothing but the MLPs' weights (and biases), drawn as torch.nn.Linear
// draws them (kaiming_uniform_ with a = sqrt(5)): uniform in +-1/sqrt(fan_in). The same seed gives the same bytes on
// every machine. Memory stays at a few megabytes whatever the size. Throws InputError.
void generate_checkpoint(const std::filesystem::path& folder, const GenerateOptions& options);

}  // namespace gatefold::checkpoint
