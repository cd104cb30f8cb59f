#include "cpu/products.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/float16.hpp"
#include "cpu/copies.hpp"

namespace gatefold::cpu {
namespace {

// Elements of a row that are converted at a time: 3 sets of 8 rows x 256 doubles are 48 KiB, about a first-level cache.
constexpr std::int64_t chunk = 256;
using Chunk = std::array<std::array<double, chunk>, tile_rows>;

template <class Stored, class Convert>
inline void widen(const std::byte* row, std::int64_t begin, std::int64_t count, double* out, Convert convert) {
  for (std::int64_t k = 0; k < count; ++k) {
    Stored value;
    std::memcpy(&value, row + (begin + k) * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    out[k] = convert(value);
  }
}

void widen(const RowSet& set, std::int64_t begin, std::int64_t count, Chunk& out) {
  for (int i = 0; i < set.count; ++i) {
    const std::byte* row = set.rows[i];
    double* line = out[i].data();
    switch (set.element) {
      case Element::fp32: widen<float>(row, begin, count, line, [](float v) { return double{v}; }); break;
      case Element::fp16:
        widen<std::uint16_t>(row, begin, count, line, [](std::uint16_t v) { return fp16_to_float(v); });
        break;
      case Element::bf16:
        widen<std::uint16_t>(row, begin, count, line, [](std::uint16_t v) { return bf16_to_float(v); });
        break;
      case Element::fp64: widen<double>(row, begin, count, line, [](double v) { return v; }); break;
    }
  }
}

GATEFOLD_INLINE void accumulate_loop(const double* a, const double* b, std::int64_t count, double& sum,
                                     double& magnitude) {
  double s = 0.0;
  double m = 0.0;
#pragma omp simd reduction(+ : s, m)
  for (std::int64_t k = 0; k < count; ++k) {
    const double product = a[k] * b[k];
    s += product;
    m += std::abs(product);
  }
  sum += s;
  magnitude += m;
}

using Accumulate = void (*)(const double* a, const double* b, std::int64_t count, double& sum, double& magnitude);

void accumulate_portably(const double* a, const double* b, std::int64_t count, double& sum, double& magnitude) {
  accumulate_loop(a, b, count, sum, magnitude);
}

#if GATEFOLD_HAS_COPIES
// 4 doubles at a time in place of 2.
GATEFOLD_AVX2 void accumulate_with_avx2(const double* a, const double* b, std::int64_t count, double& sum,
                                        double& magnitude) {
  accumulate_loop(a, b, count, sum, magnitude);
}

Accumulate find_accumulate() { return features().avx2 ? accumulate_with_avx2 : accumulate_portably; }
#else
Accumulate find_accumulate() { return accumulate_portably; }
#endif

}  // namespace

Products multiply(const RowSet& a, const RowSet& b, std::int64_t length) {
  static const Accumulate accumulate = find_accumulate();
  Products products;
  Chunk a_chunk;
  Chunk b_chunk;
  for (std::int64_t begin = 0; begin < length; begin += chunk) {
    const std::int64_t count = std::min(chunk, length - begin);
    widen(a, begin, count, a_chunk);
    widen(b, begin, count, b_chunk);
    for (int i = 0; i < a.count; ++i) {
      for (int j = 0; j < b.count; ++j) {
        accumulate(a_chunk[i].data(), b_chunk[j].data(), count, products.sum[i][j], products.magnitude[i][j]);
      }
    }
  }
  return products;
}

}  // namespace gatefold::cpu
