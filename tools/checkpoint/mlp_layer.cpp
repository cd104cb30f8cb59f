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
}

void MlpLayer::will_need() const {
  gate.will_need();
  if (up) up->will_need();
  down.will_need();
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
  if (!config) return;
  expect_size(*config, "hidden_size", config->hidden_size, layer.hidden_size, layer.gate);
  expect_size(*config, "intermediate_size", config->intermediate_size, layer.intermediate_size, layer.gate);
  layer.activation = config->activation;
}

}  // namespace gatefold::checkpoint
