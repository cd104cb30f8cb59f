#pragma once

#include <cstddef>
#include <cstdint>

#include "core/arithmetic.hpp"

namespace gatefold::swap_ffn {

// Gives out one aligned piece of a buffer behind the other.
class Placement {
 public:
  std::size_t take(std::int64_t bytes) {
    const std::size_t at = size_;
    size_ += static_cast<std::size_t>(ceil_div(bytes, alignment) * alignment);
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::int64_t alignment = 256;
  std::size_t size_ = 0;
};

}  // namespace gatefold::swap_ffn
