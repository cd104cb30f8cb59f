#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/layout.hpp"

// Where the weight rows of one half lie, for a kernel to follow: a LineMap whose division is prepared on the host. What
// is constexpr runs on the device too.
namespace gatefold::cuda::sm80 {

// n / divisor for 0 <= n < 2^31 by one multiplication: with s = ceil(log2 divisor) and m = ceil(2^(31+s) / divisor),
// m exceeds the exact factor by less than 2^-(31) of it, too little to reach the next quotient.
struct Divider {
  std::uint32_t multiplier = 0;  // 0: the divisor is 1
  std::uint32_t shift = 0;

  Divider() = default;
  explicit Divider(std::uint32_t divisor) {
    if (divisor <= 1) return;
    const auto s = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
    multiplier = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + s)) + divisor - 1) / divisor);
    shift = s - 1;
  }

  constexpr std::uint32_t operator()(std::uint32_t n) const {
    if (multiplier == 0) return n;
    return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> 32) >> shift;
  }
};

// One half of the weights by its LineMap: row j begins at base + row(j) * row_bytes.
struct WeightRows {
  const std::byte* base = nullptr;  // of row(0)
  std::int64_t row_bytes = 0;
  std::int64_t skip = 0;  // rows of the other half between two blocks of this one
  Divider block;

  WeightRows() = default;
  WeightRows(const std::byte* tensor, const LineMap& map, std::int64_t bytes)
      : base(tensor + map.first * bytes),
        row_bytes(bytes),
        skip(map.period - map.block),
        block(static_cast<std::uint32_t>(map.block)) {}

  // Bytes between two rows `lines` apart, where that is the same for all such pairs.
  constexpr std::int64_t stride(int lines) const { return row(static_cast<std::uint32_t>(lines)) * row_bytes; }

  constexpr std::int64_t row(std::uint32_t j) const {
    return std::int64_t{j} + (skip == 0 ? 0 : std::int64_t{block(j)} * skip);
  }
};

}  // namespace gatefold::cuda::sm80
