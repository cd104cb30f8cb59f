// Tensors as the library takes them: a pointer and a leading dimension. What can't be taken is refused with a
// std::runtime_error that names the argument and both values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gatefold/gatefold.h"
#include "handle.hpp"

namespace gatefold_torch {

using Sizes = std::vector<int64_t>;

// What the tensors of one call share.
struct Kind {
  int32_t dtype;
  int32_t device_type;
  int32_t device_index;

  bool operator==(const Kind&) const = default;
};

// An argument, its name and what torch says of it, asked once: every question costs a call into torch.
struct Argument {
  Argument(const char* argument_name, const Tensor& argument);

  const char* name;
  const Tensor& tensor;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
  Kind kind;

  // The dimensions that count tokens: all but the last. Refuses a tensor without dimensions.
  std::span<const int64_t> tokens() const;
  int64_t columns() const { return sizes.back(); }
};

std::string text(std::span<const int64_t> sizes);
std::string shaped(const Argument& argument);  // "x of shape [3, 8]"

gatefold_dtype dtype_of(const Argument& argument);
gatefold_device device_of(const Argument& argument);

// Refuses another element type or device than `like` has.
void require_kind(const Argument& argument, const Argument& like);
// Refuses what is no matrix.
void require_matrix(const Argument& argument);

// Refuses other sizes than `tokens`, if any, and then `last`; `why()` says where they come from.
bool has_sizes(const Argument& argument, std::span<const int64_t> tokens, std::initializer_list<int64_t> last);
[[noreturn]] void refuse_sizes(const Argument& argument, std::span<const int64_t> tokens,
                               std::initializer_list<int64_t> last, const std::string& why);
template <class Why>
void require_sizes(const Argument& argument, std::span<const int64_t> tokens, std::initializer_list<int64_t> last,
                   Why why) {
  if (!has_sizes(argument, tokens, last)) refuse_sizes(argument, tokens, last, why());
}

// Elements from row to row, 0 for packed rows; nothing where rows aren't dense, overlap, or lie at no one distance.
std::optional<int64_t> leading_dimension(const Argument& argument);
// The same of an output, which is refused where it has none.
int64_t output_leading_dimension(const Argument& out);

// A copy with packed rows.
Tensor contiguous(const Argument& argument);
const void* data_of(const Tensor& tensor);
void* writable_data_of(const Tensor& tensor);

Tensor empty(std::span<const int64_t> tokens, int64_t columns, const Kind& kind);
Tensor empty_bytes(int64_t size, const Kind& kind);

}  // namespace gatefold_torch
