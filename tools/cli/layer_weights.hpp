#pragma once

#include <cstddef>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "cli/backend.hpp"
#include "cli/block.hpp"

namespace gatefold::cli {

// A layer's weights where the host can read them and where the device can: on the CPU both are the mapped file.
class LayerWeights {
 public:
  LayerWeights(Backend& backend, const checkpoint::MlpLayer& layer);

  Tensors host() const;
  Tensors device() const;
  std::size_t bytes() const { return bytes_; }

  // Gives back the memory of gate's and up's pages; they are read again if they are touched again.
  void release_gate_and_up() const;

 private:
  struct Weight {
    Weight(Backend& backend, const checkpoint::LayerTensor& tensor);
    checkpoint::LayerTensor source;
    checkpoint::AlignedData host;
    DeviceBuffer device;
  };
  using OptionalWeight = std::optional<Weight>;
  static OptionalWeight of(Backend& backend, const std::optional<checkpoint::LayerTensor>& tensor);

  Weight gate_;
  OptionalWeight up_;
  Weight down_;
  OptionalWeight gate_bias_, up_bias_, down_bias_;
  std::size_t bytes_;
};

}  // namespace gatefold::cli
