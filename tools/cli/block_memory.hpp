#pragma once

#include <cstddef>
#include <vector>

#include "cli/backend.hpp"
#include "cli/block.hpp"

namespace gatefold::cli {

// The activations and the workspace of one block on a device; the weights and x are the caller's.
class BlockMemory {
 public:
  // What is not used takes no memory.
  struct Use {
    bool gate_and_up = true;
    bool activated = true;
    bool h = true;
    bool y = true;
    bool room_for_copy = true;  // `activated` holds half as much again, for the copy of act_and_mul's bytes
  };
  BlockMemory(Backend& backend, const Block& block, Use use, std::size_t workspace_bytes);

  // The given addresses of inputs, with those of the activations filled in.
  Tensors tensors(Tensors inputs) const;

 private:
  const Block block_;
  DeviceBuffer gate_and_up_, activated_, h_, y_, workspace_;
  std::size_t workspace_bytes_;
};

// The activations as the host can read them, next to the host's inputs: in place, or downloaded.
class HostView {
 public:
  HostView(Backend& backend, const Block& block, const Tensors& device, const Tensors& host_inputs);
  const Tensors& tensors() const { return tensors_; }

 private:
  std::byte* readable(Backend& backend, std::byte* device_data, std::size_t bytes);

  std::vector<std::vector<std::byte>> copies_;
  Tensors tensors_;
};

}  // namespace gatefold::cli
