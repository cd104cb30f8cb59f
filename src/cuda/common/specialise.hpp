#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "core/types.hpp"

// From a value known at run time to a template argument: each calls its function with the matching tag.
namespace gatefold::cuda {

template <ActivationKind kind>
using ActivationTag = std::integral_constant<ActivationKind, kind>;

template <class Function>
auto with_activation(ActivationKind kind, Function&& function) {
  switch (kind) {
    case ActivationKind::silu: return function(ActivationTag<ActivationKind::silu>{});
    case ActivationKind::gelu_tanh: return function(ActivationTag<ActivationKind::gelu_tanh>{});
    case ActivationKind::gelu_erf: return function(ActivationTag<ActivationKind::gelu_erf>{});
    case ActivationKind::relu: return function(ActivationTag<ActivationKind::relu>{});
    case ActivationKind::sigmoid: return function(ActivationTag<ActivationKind::sigmoid>{});
    case ActivationKind::swiglu_clamped: return function(ActivationTag<ActivationKind::swiglu_clamped>{});
    case ActivationKind::identity:
    case ActivationKind::none: break;
  }
  return function(ActivationTag<ActivationKind::identity>{});
}

template <class Type>
struct ElementTag {
  using type = Type;
};

template <class Function>
auto with_element(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::fp16: return function(ElementTag<__half>{});
    case DType::bf16: return function(ElementTag<__nv_bfloat16>{});
    case DType::fp32: break;
  }
  return function(ElementTag<float>{});
}

}  // namespace gatefold::cuda
