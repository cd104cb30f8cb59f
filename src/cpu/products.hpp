#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/types.hpp"

namespace gatefold::cpu {

// A matrix's elements as the reference reads them: a row begins every row_bytes bytes.
enum class Element : std::uint8_t { fp32, fp16, bf16, fp64 };

constexpr Element element_of(DType dtype) {
  return dtype == DType::fp32 ? Element::fp32 : dtype == DType::fp16 ? Element::fp16 : Element::bf16;
}

// Up to tile_rows rows, anywhere in memory.
constexpr int tile_rows = 8;
struct RowSet {
  std::array<const std::byte*, tile_rows> rows{};
  int count = 0;
  Element element = Element::fp32;
};

// The products of each row of one set with each row of the other, and the same over absolute values.
struct Products {
  std::array<std::array<double, tile_rows>, tile_rows> sum{};
  std::array<std::array<double, tile_rows>, tile_rows> magnitude{};
};

// a [a.count, length], b [b.count, length] -> a . b^T, in double precision.
Products multiply(const RowSet& a, const RowSet& b, std::int64_t length);

}  // namespace gatefold::cpu
