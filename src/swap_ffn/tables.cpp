#include "swap_ffn/tables.hpp"

#include <algorithm>
#include <cmath>

#include "core/float16.hpp"
#include "cpu/threads.hpp"

namespace gatefold::swap_ffn {
namespace {

// embed [C, E] . w [columns, E]^T + b + offset -> [C, columns]
std::vector<double> affine(const std::vector<double>& embed, const std::vector<double>& w, const std::vector<double>& b,
                           std::int64_t E, double offset) {
  const auto columns = static_cast<std::int64_t>(b.size());
  const std::int64_t C = static_cast<std::int64_t>(embed.size()) / E;
  std::vector<double> out(static_cast<std::size_t>(C * columns));
  cpu::share_out(C, cpu::thread_limit(), [&](std::int64_t c) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = b[j] + offset;
      for (std::int64_t e = 0; e < E; ++e) sum += embed[c * E + e] * w[j * E + e];
      out[c * columns + j] = sum;
    }
  });
  return out;
}

void softmax(double* values, std::int64_t count) {
  const double largest = *std::max_element(values, values + count);
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i] = std::exp(values[i] - largest);
  for (std::int64_t i = 0; i < count; ++i) values[i] /= sum;
}

}  // namespace

std::vector<double> to_doubles(const std::byte* data, DType dtype, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[i] = load(data, dtype, i);
  return values;
}

CoreTables core_tables(const Config& c, const Weights& weights) {
  const auto values = [&](Weight w) { return to_doubles(weights[w], c.dtype, elements(tensor_of(c, w))); };
  const std::vector<double> embed = values(core_embed);
  const std::int64_t E = c.core_embed_size;
  CoreTables tables{affine(embed, values(scale_w), values(scale_b), E, 1.0),
                    affine(embed, values(shift_w), values(shift_b), E, 0.0),
                    affine(embed, values(alpha_w), values(alpha_b), E, 0.0)};
  for (std::int64_t core = 0; core < c.cores; ++core) {
    softmax(tables.alpha.data() + core * c.collapse_heads, c.collapse_heads);
  }
  return tables;
}

void fold_columns(const std::byte* matrix, const std::byte* scale, DType dtype, std::int64_t rows, std::int64_t columns,
                  std::byte* out) {
  cpu::share_out(rows, cpu::thread_limit(), [&](std::int64_t row) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const std::int64_t i = row * columns + k;
      store(out, dtype, i, load(matrix, dtype, i) * load(scale, dtype, k));
    }
  });
}

}  // namespace gatefold::swap_ffn
