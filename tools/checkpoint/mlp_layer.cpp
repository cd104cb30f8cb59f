#include "checkpoint/mlp_layer.hpp"

#include "checkpoint/input_error.hpp"

namespace gatefold::checkpoint {
namespace {

std::string label(const LayerTensor& tensor) { return tensor.file->path().string() + ": tensor " + tensor.tensor.name; }

gatefold_dtype matrix_dtype(const LayerTensor& matrix) {
  const Tensor& tensor = matrix.tensor;
  if (tensor.shape.size() != 2) {
    throw_input_error(label(matrix), ": shape ", to_string(tensor.shape), " has ", tensor.shape.size(),
                      " dimensions, expected 2");
  }
  const auto dtype = gatefold_dtype_of(tensor.type);
  if (!dtype) throw_input_error(label(matrix), ": elements are ", tensor.type.name, ", expected BF16, F16 or F32");
  return *dtype;
}

void expect_like_gate(const LayerTensor& matrix, const Shape& shape, const LayerTensor& gate) {
  if (matrix_dtype(matrix) != matrix_dtype(gate)) {
    throw_input_error(label(matrix), ": elements are ", matrix.tensor.type.name, ", but those of ", gate.tensor.name,
                      " are ", gate.tensor.type.name);
  }
  if (matrix.tensor.shape != shape) {
    throw_input_error(label(matrix), ": shape ", to_string(matrix.tensor.shape), ", expected ", to_string(shape),
                      " to match ", gate.tensor.name, " ", to_string(gate.tensor.shape));
  }
}

void expect_bias(const std::optional<LayerTensor>& bias, std::int64_t length, const LayerTensor& weight) {
  if (!bias) return;
  if (bias->tensor.type.name != weight.tensor.type.name) {
    throw_input_error(label(*bias), ": elements are ", bias->tensor.type.name, ", but those of ", weight.tensor.name,
                      " are ", weight.tensor.type.name);
  }
  if (bias->tensor.shape != Shape{length}) {
    throw_input_error(label(*bias), ": shape ", to_string(bias->tensor.shape), ", expected ", to_string(Shape{length}),
                      " to match ", weight.tensor.name, " ", to_string(weight.tensor.shape));
  }
}

// config.json and the tensors must agree: a bias that one of them leaves out would be missed silently.
void expect_biases(const ModelConfig& config, const MlpLayer& layer) {
  if (!config.mlp_bias) return;
  const bool all = layer.gate_bias && (layer.up_bias || layer.layout.packed()) && layer.down_bias;
  if (*config.mlp_bias && !all) {
    throw_input_error(config.path.string(), ": mlp_bias is true, but layer ", layer.index,
                      " lacks a bias beside tensor ", (!layer.down_bias ? layer.down : layer.gate).tensor.name);
  }
  if (!*config.mlp_bias && layer.biases().any()) {
    const LayerTensor& there = layer.gate_bias ? *layer.gate_bias : layer.up_bias ? *layer.up_bias : *layer.down_bias;
    throw_input_error(config.path.string(), ": mlp_bias is false, but there is tensor ", there.tensor.name);
  }
}

void expect_size(const ModelConfig& config, const char* key, const std::optional<std::int64_t>& expected,
                 std::int64_t actual, const LayerTensor& gate) {
  if (expected && *expected != actual) {
    throw_input_error(config.path.string(), ": ", key, " is ", *expected, ", but tensor ", gate.tensor.name, " ",
                      to_string(gate.tensor.shape), " makes it ", actual);
  }
}

}  // namespace

void MlpLayer::release() const {
  gate.release();
  if (up) up->release();
  down.release();
  for (const auto* bias : {&gate_bias, &up_bias, &down_bias}) {
    if (*bias) (*bias)->release();
  }
}

void MlpLayer::will_need() const {
  gate.will_need();
  if (up) up->will_need();
  down.will_need();
  for (const auto* bias : {&gate_bias, &up_bias, &down_bias}) {
    if (*bias) (*bias)->will_need();
  }
}

void complete_layer(MlpLayer& layer, const std::optional<ModelConfig>& config) {
  layer.dtype = matrix_dtype(layer.gate);
  const std::int64_t rows = layer.gate.tensor.shape[0];
  if (layer.layout.packed() && rows % 2 != 0) {
    throw_input_error(label(layer.gate), ": ", rows, " rows, expected an even number: gate and up halves");
  }
  layer.hidden_size = layer.gate.tensor.shape[1];
  layer.intermediate_size = layer.layout.packed() ? rows / 2 : rows;
  if (layer.up) expect_like_gate(*layer.up, layer.gate.tensor.shape, layer.gate);
  expect_like_gate(layer.down, {layer.hidden_size, layer.intermediate_size}, layer.gate);
  expect_bias(layer.gate_bias, rows, layer.gate);
  if (layer.up) expect_bias(layer.up_bias, rows, *layer.up);
  expect_bias(layer.down_bias, layer.hidden_size, layer.down);
  if (!config) return;
  expect_size(*config, "hidden_size", config->hidden_size, layer.hidden_size, layer.gate);
  expect_size(*config, "intermediate_size", config->intermediate_size, layer.intermediate_size, layer.gate);
  expect_biases(*config, layer);
  layer.activation = config->activation;
}

}  // namespace gatefold::checkpoint
