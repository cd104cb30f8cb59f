#include "support/tensor.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gatefold::test {
namespace {

constexpr std::size_t canary_bytes = 256;
constexpr std::byte poison_byte{0xff};  // 0xffff and 0xffffffff are NaN in every format

std::size_t span_bytes(gatefold_dtype dtype, const Shape& shape) {
  const bool empty = shape.rows == 0 || shape.columns == 0;
  return empty ? 0 : static_cast<std::size_t>((shape.rows - 1) * shape.ld + shape.columns) * element_size(dtype);
}

}  // namespace

Tensor::Tensor(Memory& memory, gatefold_dtype dtype, const Shape& shape)
    : memory_(&memory),
      dtype_(dtype),
      shape_(shape),
      first_(static_cast<std::ptrdiff_t>(canary_bytes + static_cast<std::size_t>(shape.shift) * element_size(dtype))),
      image_(static_cast<std::size_t>(first_) + span_bytes(dtype, shape) + canary_bytes, poison_byte),
      allocation_(memory, image_.size()) {}

void Tensor::poison() { std::fill(image_.begin(), image_.end(), poison_byte); }

void Tensor::upload() {
  uploaded_ = image_;
  memory_->upload(allocation_.get(), image_.data(), image_.size());
}

void Tensor::download() { memory_->download(image_.data(), allocation_.get(), image_.size()); }

bool Tensor::is_element(std::size_t byte) const {
  const std::ptrdiff_t from_first = static_cast<std::ptrdiff_t>(byte) - first_;
  if (from_first < 0) return false;
  const std::int64_t index = from_first / static_cast<std::ptrdiff_t>(element_size(dtype_));
  return shape_.ld > 0 && index / shape_.ld < shape_.rows && index % shape_.ld < shape_.columns;
}

void Tensor::expect_unchanged(const std::string& name) const {
  const auto changed = std::mismatch(image_.begin(), image_.end(), uploaded_.begin()).first;
  EXPECT_EQ(changed, image_.end()) << name << ": byte " << changed - image_.begin() - first_
                                   << " from its first element was changed";
}

void Tensor::expect_surroundings_unchanged(const std::string& name) const {
  for (std::size_t byte = 0; byte < image_.size(); ++byte) {
    if (image_[byte] == uploaded_[byte] || is_element(byte)) continue;
    ADD_FAILURE() << name << ": byte " << static_cast<std::ptrdiff_t>(byte) - first_
                  << " from its first element lies outside the matrix and was written";
    return;
  }
}

}  // namespace gatefold::test
