#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/element.hpp"
#include "support/memory.hpp"

namespace gatefold::test {

// How a matrix lies in its buffer.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t ld = 0;
  std::int64_t shift = 0;  // elements by which its first lies behind a 256-byte boundary
};

// A matrix in device memory and its image on the host. Whatever is not one of its elements (the padding behind each
// row, and the canaries around the whole) is NaN: read by mistake, it spreads; written by mistake, it is found.
class Tensor {
 public:
  Tensor(Memory& memory, gatefold_dtype dtype, const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::byte* host() { return image_.data() + first_; }
  const std::byte* host() const { return image_.data() + first_; }
  std::byte* device() const { return allocation_.get() + first_; }

  double get(std::int64_t row, std::int64_t column) const { return decode(dtype_, host() + offset(row, column)); }
  void set(std::int64_t row, std::int64_t column, double value) { encode(dtype_, value, host() + offset(row, column)); }

  void poison();    // every element becomes NaN
  void upload();    // image -> device; remembers the image
  void download();  // device -> image

  // Test failures where a byte changed since the upload: any, or any outside the elements.
  void expect_unchanged(const std::string& name) const;
  void expect_surroundings_unchanged(const std::string& name) const;

 private:
  std::ptrdiff_t offset(std::int64_t row, std::int64_t column) const {
    return (row * shape_.ld + column) * static_cast<std::int64_t>(element_size(dtype_));
  }
  bool is_element(std::size_t byte) const;

  Memory* memory_;
  gatefold_dtype dtype_;
  Shape shape_;
  std::ptrdiff_t first_;  // byte of the first element
  std::vector<std::byte> image_;
  std::vector<std::byte> uploaded_;
  Allocation allocation_;
};

}  // namespace gatefold::test
