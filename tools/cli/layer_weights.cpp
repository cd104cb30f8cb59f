#include "cli/layer_weights.hpp"

namespace gatefold::cli {

LayerWeights::Weight::Weight(Backend& backend, const checkpoint::LayerTensor& tensor)
    : source(tensor), host(tensor.tensor), device(DeviceBuffer::of(backend, {host.data(), tensor.tensor.bytes})) {}

LayerWeights::OptionalWeight LayerWeights::of(Backend& backend, const std::optional<checkpoint::LayerTensor>& tensor) {
  OptionalWeight weight;
  if (tensor) weight.emplace(backend, *tensor);
  return weight;
}

LayerWeights::LayerWeights(Backend& backend, const checkpoint::MlpLayer& layer)
    : gate_(backend, layer.gate),
      up_(of(backend, layer.up)),
      down_(backend, layer.down),
      gate_bias_(of(backend, layer.gate_bias)),
      up_bias_(of(backend, layer.up_bias)),
      down_bias_(of(backend, layer.down_bias)),
      bytes_(layer.gate.tensor.bytes + layer.down.tensor.bytes) {
  for (const auto* tensor : {&layer.up, &layer.gate_bias, &layer.up_bias, &layer.down_bias}) {
    if (*tensor) bytes_ += (*tensor)->tensor.bytes;
  }
}

Tensors LayerWeights::host() const {
  const auto data = [](const OptionalWeight& weight) { return weight ? weight->host.data() : nullptr; };
  Tensors tensors;
  tensors.w_gate = gate_.host.data();
  tensors.w_up = data(up_);
  tensors.w_down = down_.host.data();
  tensors.b_gate = data(gate_bias_);
  tensors.b_up = data(up_bias_);
  tensors.b_down = data(down_bias_);
  return tensors;
}

Tensors LayerWeights::device() const {
  const auto data = [](const OptionalWeight& weight) { return weight ? weight->device.data() : nullptr; };
  Tensors tensors;
  tensors.w_gate = gate_.device.data();
  tensors.w_up = data(up_);
  tensors.w_down = down_.device.data();
  tensors.b_gate = data(gate_bias_);
  tensors.b_up = data(up_bias_);
  tensors.b_down = data(down_bias_);
  return tensors;
}

void LayerWeights::release_gate_and_up() const {
  gate_.source.release();
  if (up_) up_->source.release();
}

}  // namespace gatefold::cli
