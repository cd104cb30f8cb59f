// Tensors as the library takes them: a pointer and a leading dimension. What can't be taken is refused with a
// std::runtime_error that names the argument and both values.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gatefold/gatefold.h"

namespace gatefold_torch {

using torch::stable::Tensor;
using Sizes = std::vector<int64_t>;

// What the tensors of one call share.
struct Kind {
  int32_t dtype;
  int32_t device_type;
  int32_t device_index;
};

// Where the rows of a tensor lie. All dimensions but the last count rows.
struct Rows {
  const void* data;
  int64_t ld;  // 0: packed
};

std::span<const int64_t> sizes_of(const Tensor& tensor);
std::string text(std::span<const int64_t> sizes);

Kind kind_of(const Tensor& tensor);
gatefold_dtype dtype_of(const char* name, const Kind& kind);
gatefold_device device_of(const char* name, const Kind& kind);

// Refuses another element type or device than those of the argument `like_name`.
void require_kind(const char* name, const Tensor& tensor, const Kind& kind, const char* like_name);
// Refuses another shape; `why` says where the wanted one comes from.
void require_sizes(const char* name, const Tensor& tensor, const Sizes& wanted, const std::string& why);

// Elements from row to row, 0 for packed rows; nothing where rows aren't dense, overlap, or lie at no one distance.
std::optional<int64_t> leading_dimension(const Tensor& tensor);

// Reads rows where they lie. What has no leading dimension is replaced by a contiguous copy, which `tensor` then is.
Rows input_rows(Tensor& tensor);
// An output's leading dimension. One that has none is refused.
int64_t output_leading_dimension(const Tensor& out);

Tensor empty(std::span<const int64_t> sizes, const Kind& kind);
Tensor empty_bytes(int64_t size, const Kind& kind);

}  // namespace gatefold_torch
