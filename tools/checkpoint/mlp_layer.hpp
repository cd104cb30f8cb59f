#pragma once

#include <cstdint>
#include <memory>
#include <optional>

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

  // The vectors that are there; gate_up: one for both halves, in the order of the weight's rows.
  std::optional<LayerTensor> gate_bias;  // [F]; gate_up: [2F]
  std::optional<LayerTensor> up_bias;    // [F]; gate_up: empty
  std::optional<LayerTensor> down_bias;  // [D]

  Biases biases() const {
    return {.gate = gate_bias.has_value(), .up = up_bias.has_value(), .down = down_bias.has_value()};
  }

  void release() const;
  void will_need() const;
};

// Takes dtype, sizes and activation from the layer's tensors and the config, checking them against each other. Throws
// InputError.
void complete_layer(MlpLayer& layer, const std::optional<ModelConfig>& config);

}  // namespace gatefold::checkpoint
