#include "cuda/common/owner.hpp"

#include <array>

#include "cuda/common/device.hpp"
#include "cuda/common/error.hpp"

namespace gatefold::cuda {
namespace {

// D = 0 leaves the operands of the product empty, and F = 0 those of both of mlp's: their pointers may then be
// anything.
std::array<NamedPointer, 9> tensors_of(const Problem& p, const Operands& o) {
  const bool reads_gate_values = p.op == Op::act_and_mul || p.op == Op::gemm_gated;
  const bool has_product = p.hidden_size > 0 && (p.op != Op::mlp || p.intermediate_size > 0);
  const bool reads_up = p.op == Op::act_and_mul || has_product;
  return {{{"out", o.out},
           {"x", has_product ? o.x : nullptr},
           {"gate", reads_gate_values || has_product ? o.gate : nullptr},
           {"up", reads_up ? o.up : nullptr},
           {"down", has_product ? o.down : nullptr},
           {"gate_bias", o.gate_bias},
           {"up_bias", o.up_bias},
           {"down_bias", o.down_bias},
           {"workspace", o.workspace_size > 0 ? o.workspace : nullptr}}};
}

}  // namespace

Status owner_device(std::span<const NamedPointer> tensors, int& device) {
  const char* owned = nullptr;  // the first tensor that decides
  int owner = -1;
  for (const NamedPointer& tensor : tensors) {
    if (tensor.data == nullptr) continue;
    cudaPointerAttributes attributes{};
    const cudaError_t error = cudaPointerGetAttributes(&attributes, tensor.data);
    if (Status status = status_of(error, "cudaPointerGetAttributes", 0); !status.ok()) return status;
    if (attributes.type == cudaMemoryTypeUnregistered) {
      return invalid(tensor.name, ": ", tensor.data,
                     " is host memory that no CUDA device can reach; the plan's device is ", to_string(Device::cuda));
    }
    if (attributes.type != cudaMemoryTypeDevice) continue;
    if (owned == nullptr) {
      owned = tensor.name;
      owner = attributes.device;
    } else if (attributes.device != owner) {
      return invalid(tensor.name, ": on device ", attributes.device, ", but ", owned, " is on device ", owner);
    }
  }
  if (owned == nullptr) {
    if (Status status = status_of(cudaGetDevice(&owner), "cudaGetDevice", 0); !status.ok()) return status;
  }
  if (owner < 0 || owner >= static_cast<int>(devices().list.size())) {
    return {GATEFOLD_ERROR_DEVICE, concat("device: ", owner, " is not one of the ", devices().list.size(),
                                          " devices that this process started with")};
  }
  device = owner;
  return {};
}

Status owner_device(const Problem& problem, const Operands& operands, int& device) {
  return owner_device(tensors_of(problem, operands), device);
}

}  // namespace gatefold::cuda
