// Tensors as torch's stable ABI hands them over: one owner each. (torch::stable::Tensor shares them, and pays with an
// allocation for each argument of each call.)
#pragma once

#include <torch/csrc/stable/library.h>

#include <memory>
#include <optional>
#include <string>

namespace gatefold_torch {

struct DeleteTensor {
  void operator()(AtenTensorHandle handle) const { aoti_torch_delete_tensor_object(handle); }
};
using Tensor = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

// None, or a tensor.
struct OptionalTensor {
  Tensor tensor;

  explicit operator bool() const { return tensor != nullptr; }
  const Tensor& operator*() const { return tensor; }
};

// Takes an argument off an operator's stack, which gives it away.
template <class Type>
Type take(StableIValue value) {
  using torch::stable::detail::to;
  if constexpr (std::is_same_v<Type, Tensor>) {
    return Tensor(to<AtenTensorHandle>(value));
  } else if constexpr (std::is_same_v<Type, OptionalTensor>) {
    return {Tensor(to<std::optional<AtenTensorHandle>>(value).value_or(nullptr))};
  } else {
    return to<Type>(value);
  }
}

}  // namespace gatefold_torch
