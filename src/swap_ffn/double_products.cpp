#include "swap_ffn/double_products.hpp"

#include <cmath>

#include "cpu/products.hpp"
#include "cpu/threads.hpp"
#include "cpu/truth.hpp"

namespace gatefold::swap_ffn {

DoubleProduct multiply(const double* a, std::int64_t a_rows, const Stored& w, std::int64_t depth) {
  const auto size = static_cast<std::size_t>(a_rows * w.rows);
  DoubleProduct product{std::vector<double>(size), std::vector<double>(size)};
  const std::int64_t tiles = cpu::tile_count(a_rows, w.rows);
  cpu::share_out_dynamically(tiles, cpu::thread_limit(), [&](std::int64_t index) {
    const cpu::TileRange range = cpu::tile_range(a_rows, w.rows, index);
    cpu::RowSet left{.count = range.rows, .element = cpu::Element::fp64};
    cpu::RowSet right{.count = range.columns, .element = cpu::element_of(w.dtype)};
    for (int i = 0; i < range.rows; ++i) {
      left.rows[i] = reinterpret_cast<const std::byte*>(a + (range.row + i) * depth);
    }
    for (int j = 0; j < range.columns; ++j) {
      right.rows[j] = w.data + (range.column + j) * depth * size_of(w.dtype);
    }
    const cpu::Products sums = cpu::multiply(left, right, depth);
    for (int i = 0; i < range.rows; ++i) {
      for (int j = 0; j < range.columns; ++j) {
        const auto at = static_cast<std::size_t>((range.row + i) * w.rows + range.column + j);
        product.sum[at] = sums.sum[i][j];
        product.magnitude[at] = sums.magnitude[i][j];
      }
    }
  });
  return product;
}

double inverse_rms(const double* row, std::int64_t count, double eps) {
  double sum = 0.0;
  for (std::int64_t d = 0; d < count; ++d) sum += row[d] * row[d];
  return 1.0 / std::sqrt(sum / static_cast<double>(count) + eps);
}

}  // namespace gatefold::swap_ffn
