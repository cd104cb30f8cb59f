#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace gatefold::swap_ffn {

// A matrix as it is stored: [rows, depth], contiguous.
struct Stored {
  const std::byte* data;
  DType dtype;
  std::int64_t rows;
};

struct DoubleProduct {
  std::vector<double> sum;        // [a's rows, w's rows]
  std::vector<double> magnitude;  // the same over absolute values
};

// a [a_rows, depth] . w^T in double precision.
DoubleProduct multiply(const double* a, std::int64_t a_rows, const Stored& w, std::int64_t depth);

// 1 / sqrt(mean(v^2) + eps)
double inverse_rms(const double* row, std::int64_t count, double eps);

}  // namespace gatefold::swap_ffn
