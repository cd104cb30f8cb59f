#include "tensors.hpp"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace gatefold_torch {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::runtime_error(message); }

std::string dtype_text(int32_t dtype) {
  if (dtype == aoti_torch_dtype_float32()) return "float32";
  if (dtype == aoti_torch_dtype_float16()) return "float16";
  if (dtype == aoti_torch_dtype_bfloat16()) return "bfloat16";
  if (dtype == aoti_torch_dtype_float64()) return "float64";
  return "torch's number " + std::to_string(dtype);
}

std::string device_text(const Kind& kind) {
  if (kind.device_type == aoti_torch_device_type_cpu()) return "cpu";
  std::string name = kind.device_type == aoti_torch_device_type_cuda() ? "cuda:" : "another kind of device, number ";
  return name.append(std::to_string(kind.device_index));
}

std::span<const int64_t> strides_of(const Tensor& tensor) {
  int64_t* strides = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(tensor.get(), &strides));
  return {strides, static_cast<size_t>(tensor.dim())};
}

Tensor empty(std::span<const int64_t> sizes, std::span<const int64_t> strides, const Kind& kind) {
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                                                  kind.dtype, kind.device_type, kind.device_index, &handle));
  return Tensor(handle);
}

}  // namespace

std::span<const int64_t> sizes_of(const Tensor& tensor) {
  int64_t* sizes = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(tensor.get(), &sizes));
  return {sizes, static_cast<size_t>(tensor.dim())};
}

std::string text(std::span<const int64_t> sizes) {
  std::string list("[");
  for (const int64_t size : sizes) list.append(list.size() > 1 ? ", " : "").append(std::to_string(size));
  return list.append("]");
}

Kind kind_of(const Tensor& tensor) {
  Kind kind{};
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &kind.dtype));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &kind.device_type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(tensor.get(), &kind.device_index));
  return kind;
}

gatefold_dtype dtype_of(const char* name, const Kind& kind) {
  static const int32_t fp32 = aoti_torch_dtype_float32();
  static const int32_t fp16 = aoti_torch_dtype_float16();
  static const int32_t bf16 = aoti_torch_dtype_bfloat16();
  if (kind.dtype == bf16) return GATEFOLD_DTYPE_BF16;
  if (kind.dtype == fp16) return GATEFOLD_DTYPE_FP16;
  if (kind.dtype == fp32) return GATEFOLD_DTYPE_FP32;
  refuse(std::string(name) + ": dtype " + dtype_text(kind.dtype) + ", not one of float32, float16, bfloat16");
}

gatefold_device device_of(const char* name, const Kind& kind) {
  if (kind.device_type == aoti_torch_device_type_cpu()) return GATEFOLD_DEVICE_CPU;
  if (kind.device_type == aoti_torch_device_type_cuda()) return GATEFOLD_DEVICE_CUDA;
  refuse(std::string(name) + ": on " + device_text(kind) + ", not one of cpu, cuda");
}

void require_kind(const char* name, const Tensor& tensor, const Kind& kind, const char* like_name) {
  const Kind found = kind_of(tensor);
  if (found.dtype != kind.dtype) {
    refuse(std::string(name) + ": dtype " + dtype_text(found.dtype) + ", but " + like_name + " has " +
           dtype_text(kind.dtype));
  }
  if (found.device_type != kind.device_type || found.device_index != kind.device_index) {
    refuse(std::string(name) + ": on " + device_text(found) + ", but " + like_name + " is on " + device_text(kind));
  }
}

void require_sizes(const char* name, const Tensor& tensor, const Sizes& wanted, const std::string& why) {
  const auto found = sizes_of(tensor);
  if (!std::ranges::equal(found, wanted)) {
    refuse(std::string(name) + ": shape " + text(found) + ", but " + why + " wants " + text(wanted));
  }
}

std::optional<int64_t> leading_dimension(const Tensor& tensor) {
  const auto sizes = sizes_of(tensor);
  const auto strides = strides_of(tensor);
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

Rows input_rows(Tensor& tensor) {
  auto ld = leading_dimension(tensor);
  if (!ld) {
    tensor = torch::stable::contiguous(tensor);
    ld = 0;
  }
  return {tensor.const_data_ptr(), *ld};
}

int64_t output_leading_dimension(const Tensor& out) {
  const auto ld = leading_dimension(out);
  if (!ld) {
    refuse("out: strides " + text(strides_of(out)) + " for shape " + text(sizes_of(out)) +
           ", but the elements of a row have to lie side by side, and its rows at one distance without overlap");
  }
  return *ld;
}

Tensor empty(std::span<const int64_t> sizes, const Kind& kind) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return empty(sizes, strides, kind);
}

Tensor empty_bytes(int64_t size, const Kind& kind) {
  const int64_t stride = 1;
  return empty({&size, 1}, {&stride, 1}, {aoti_torch_dtype_uint8(), kind.device_type, kind.device_index});
}

}  // namespace gatefold_torch
