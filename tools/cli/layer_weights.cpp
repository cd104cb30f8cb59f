#include "cli/layer_weights.hpp"

namespace gatefold::cli {

LayerWeights::Weight::Weight(Backend& backend, const checkpoint::LayerTensor& tensor)
    : source(tensor), host(tensor.tensor), device(DeviceBuffer::of(backend, {host.data(), tensor.tensor.bytes})) {}

LayerWeights::LayerWeights(Backend& backend, const checkpoint::MlpLayer& layer)
    : gate_(backend, layer.gate),
      down_(backend, layer.down),
      bytes_(layer.gate.tensor.bytes + layer.down.tensor.bytes) {
  if (!layer.up) return;
  up_.emplace(backend, *layer.up);
  bytes_ += layer.up->tensor.bytes;
}

Tensors LayerWeights::host() const {
  Tensors tensors;
  tensors.w_gate = gate_.host.data();
  tensors.w_up = up_ ? up_->host.data() : nullptr;
  tensors.w_down = down_.host.data();
  return tensors;
}

Tensors LayerWeights::device() const {
  Tensors tensors;
  tensors.w_gate = gate_.device.data();
  tensors.w_up = up_ ? up_->device.data() : nullptr;
  tensors.w_down = down_.device.data();
  return tensors;
}

void LayerWeights::release_gate_and_up() const {
  gate_.source.release();
  if (up_) up_->source.release();
}

}  // namespace gatefold::cli
