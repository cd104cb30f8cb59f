#include "cli/block_memory.hpp"

namespace gatefold::cli {
namespace {

DeviceBuffer allocate_if(bool used, Backend& backend, std::size_t bytes) {
  return used ? DeviceBuffer(backend, bytes) : DeviceBuffer();
}

}  // namespace

BlockMemory::BlockMemory(Backend& backend, const Block& block, Use use, std::size_t workspace_bytes)
    : block_(block),
      gate_and_up_(allocate_if(use.gate_and_up, backend, 2 * block.h_bytes())),
      activated_(allocate_if(use.activated, backend, use.room_for_copy ? block.h_bytes() * 3 / 2 : block.h_bytes())),
      h_(allocate_if(use.h, backend, block.h_bytes())),
      y_(allocate_if(use.y, backend, block.x_bytes())),
      workspace_(allocate_if(workspace_bytes != 0, backend, workspace_bytes)),
      workspace_bytes_(workspace_bytes) {}

Tensors BlockMemory::tensors(Tensors inputs) const {
  inputs.gate = gate_and_up_.writable();
  if (inputs.gate != nullptr) inputs.up = inputs.gate + block_.h_bytes();
  inputs.activated = activated_.writable();
  inputs.h = h_.writable();
  inputs.y = y_.writable();
  inputs.workspace = {workspace_.writable(), workspace_bytes_};
  return inputs;
}

HostView::HostView(Backend& backend, const Block& block, const Tensors& device, const Tensors& host_inputs)
    : tensors_(host_inputs) {
  tensors_.gate = readable(backend, device.gate, 2 * block.h_bytes());
  if (tensors_.gate != nullptr) tensors_.up = tensors_.gate + block.h_bytes();
  tensors_.h = readable(backend, device.h, block.h_bytes());
  tensors_.y = readable(backend, device.y, block.x_bytes());
}

std::byte* HostView::readable(Backend& backend, std::byte* device_data, std::size_t bytes) {
  if (backend.uses_host_memory() || device_data == nullptr) return device_data;
  std::vector<std::byte>& copy = copies_.emplace_back(bytes);
  backend.download(copy, device_data);
  return copy.data();
}

}  // namespace gatefold::cli
