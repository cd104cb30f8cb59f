#include "tensors.hpp"

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace gatefold_torch {
namespace {

// Sizes up to here need no memory of their own.
constexpr size_t kFewDimensions = 8;

[[noreturn]] void refuse(const Argument& argument, const std::string& message) {
  throw std::runtime_error(std::string(argument.name).append(": ").append(message));
}

std::string dtype_text(int32_t dtype) {
  using enum torch::headeronly::ScalarType;
  constexpr std::pair<torch::headeronly::ScalarType, const char*> kNames[] = {
      {Float, "float32"},
      {Half, "float16"},
      {BFloat16, "bfloat16"},
      {Double, "float64"},
      {Byte, "uint8"},
      {Char, "int8"},
      {Short, "int16"},
      {Int, "int32"},
      {Long, "int64"},
      {Bool, "bool"},
      {ComplexFloat, "complex64"},
      {ComplexDouble, "complex128"},
      {Float8_e5m2, "float8_e5m2"},
      {Float8_e4m3fn, "float8_e4m3fn"},
  };
  for (const auto& [type, name] : kNames) {
    if (static_cast<int32_t>(type) == dtype) return name;
  }
  return "torch's number " + std::to_string(dtype);
}

std::string device_text(const Kind& kind) {
  if (kind.device_type == aoti_torch_device_type_cpu()) return "cpu";
  std::string name = kind.device_type == aoti_torch_device_type_cuda() ? "cuda:" : "another kind of device, number ";
  return name.append(std::to_string(kind.device_index));
}

Tensor empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, const Kind& kind) {
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                                                  kind.dtype, kind.device_type, kind.device_index, &handle));
  return Tensor(handle);
}

}  // namespace

Argument::Argument(const char* argument_name, const Tensor& argument) : name(argument_name), tensor(argument), kind{} {
  AtenTensorHandle handle = argument.get();
  bool is_defined = false;
  TORCH_ERROR_CODE_CHECK(aoti_torch_is_defined(handle, &is_defined));
  if (!is_defined) refuse(*this, "None, not a tensor");
  int64_t dimensions = 0;
  int64_t* size = nullptr;
  int64_t* stride = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(handle, &dimensions));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(handle, &size));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(handle, &stride));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(handle, &kind.dtype));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(handle, &kind.device_type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(handle, &kind.device_index));
  sizes = {size, static_cast<size_t>(dimensions)};
  strides = {stride, static_cast<size_t>(dimensions)};
}

std::span<const int64_t> Argument::tokens() const {
  if (sizes.empty()) refuse(*this, "shape [], but rows want at least 1 dimension");
  return sizes.first(sizes.size() - 1);
}

std::string text(std::span<const int64_t> sizes) {
  std::string list("[");
  for (const int64_t size : sizes) list.append(list.size() > 1 ? ", " : "").append(std::to_string(size));
  return list.append("]");
}

std::string shaped(const Argument& argument) {
  return std::string(argument.name).append(" of shape ").append(text(argument.sizes));
}

gatefold_dtype dtype_of(const Argument& argument) {
  static const int32_t fp32 = aoti_torch_dtype_float32();
  static const int32_t fp16 = aoti_torch_dtype_float16();
  static const int32_t bf16 = aoti_torch_dtype_bfloat16();
  if (argument.kind.dtype == bf16) return GATEFOLD_DTYPE_BF16;
  if (argument.kind.dtype == fp16) return GATEFOLD_DTYPE_FP16;
  if (argument.kind.dtype == fp32) return GATEFOLD_DTYPE_FP32;
  refuse(argument, "dtype " + dtype_text(argument.kind.dtype) + ", not one of float32, float16, bfloat16");
}

gatefold_device device_of(const Argument& argument) {
  if (argument.kind.device_type == aoti_torch_device_type_cpu()) return GATEFOLD_DEVICE_CPU;
  if (argument.kind.device_type == aoti_torch_device_type_cuda()) return GATEFOLD_DEVICE_CUDA;
  refuse(argument, "on " + device_text(argument.kind) + ", not one of cpu, cuda");
}

void require_kind(const Argument& argument, const Argument& like) {
  if (argument.kind == like.kind) return;
  if (argument.kind.dtype != like.kind.dtype) {
    refuse(argument,
           "dtype " + dtype_text(argument.kind.dtype) + ", but " + like.name + " has " + dtype_text(like.kind.dtype));
  }
  refuse(argument, "on " + device_text(argument.kind) + ", but " + like.name + " is on " + device_text(like.kind));
}

void require_matrix(const Argument& argument) {
  if (argument.sizes.size() == 2) return;
  refuse(argument, "shape " + text(argument.sizes) + " of " + std::to_string(argument.sizes.size()) +
                       " dimensions, but a weight has 2");
}

bool has_sizes(const Argument& argument, std::span<const int64_t> tokens, std::initializer_list<int64_t> last) {
  return argument.sizes.size() == tokens.size() + last.size() &&
         std::ranges::equal(argument.sizes.first(tokens.size()), tokens) &&
         std::ranges::equal(argument.sizes.last(last.size()), last);
}

void refuse_sizes(const Argument& argument, std::span<const int64_t> tokens, std::initializer_list<int64_t> last,
                  const std::string& why) {
  Sizes wanted(tokens.begin(), tokens.end());
  wanted.insert(wanted.end(), last);
  refuse(argument, "shape " + text(argument.sizes) + ", but " + why + " wants " + text(wanted));
}

std::optional<int64_t> leading_dimension(const Argument& argument) {
  const auto sizes = argument.sizes;
  const auto strides = argument.strides;
  if (sizes.empty() || std::ranges::find(sizes, 0) != sizes.end()) return 0;
  const int64_t columns = sizes.back();
  if (columns > 1 && strides.back() != 1) return std::nullopt;
  int64_t ld = 0;    // of the innermost dimension that counts rows
  int64_t next = 0;  // the stride at which the dimension outside it goes on
  for (size_t i = sizes.size() - 1; i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (next == 0) {
      ld = next = strides[i];
      if (ld < columns) return std::nullopt;
    } else if (strides[i] != next) {
      return std::nullopt;
    }
    next *= sizes[i];
  }
  return ld == columns ? 0 : ld;
}

int64_t output_leading_dimension(const Argument& out) {
  const auto ld = leading_dimension(out);
  if (ld) return *ld;
  refuse(out, "strides " + text(out.strides) + " for shape " + text(out.sizes) +
                  ", but the elements of a row have to lie side by side, and its rows at one distance without overlap");
}

Tensor contiguous(const Argument& argument) {
  AtenTensorHandle shared = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(argument.tensor.get(), &shared));
  const auto copy = torch::stable::contiguous(torch::stable::Tensor(shared));
  AtenTensorHandle owned = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(copy.get(), &owned));
  return Tensor(owned);
}

const void* data_of(const Tensor& tensor) {
  const void* data = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_get_const_data_ptr(tensor.get(), &data));
  return data;
}

void* writable_data_of(const Tensor& tensor) {
  void* data = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_get_mutable_data_ptr(tensor.get(), &data));
  return data;
}

Tensor empty(std::span<const int64_t> tokens, int64_t columns, const Kind& kind) {
  const size_t dimensions = tokens.size() + 1;
  int64_t few[2 * kFewDimensions];
  Sizes many(dimensions > kFewDimensions ? 2 * dimensions : 0);
  const std::span<int64_t> memory(many.empty() ? few : many.data(), 2 * dimensions);
  const auto sizes = memory.first(dimensions);
  const auto strides = memory.last(dimensions);
  std::ranges::copy(tokens, sizes.begin());
  sizes.back() = columns;
  int64_t stride = 1;
  for (size_t i = dimensions; i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return empty_strided(sizes, strides, kind);
}

Tensor empty_bytes(int64_t size, const Kind& kind) {
  const int64_t stride = 1;
  return empty_strided({&size, 1}, {&stride, 1}, {aoti_torch_dtype_uint8(), kind.device_type, kind.device_index});
}

}  // namespace gatefold_torch
