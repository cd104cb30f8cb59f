#include "cli/swap_ffn_loops.hpp"

#include <algorithm>
#include <cmath>

#include "cli/element.hpp"

namespace gatefold::cli {
namespace {

template <class Element>
using StoredAs = typename Element::Stored;

template <class Element>
float at(const Bytes& tensor, std::int64_t i) {
  return Element::load(reinterpret_cast<const StoredAs<Element>*>(tensor.data())[i]);
}
template <class Element>
void put(Bytes& tensor, std::int64_t i, float value) {
  reinterpret_cast<StoredAs<Element>*>(tensor.data())[i] = Element::store(value);
}

}  // namespace

void rms_norm(gatefold_dtype dtype, const Bytes& in, const Bytes& norm, double eps, std::int64_t rows, std::int64_t D,
              Bytes& out) {
  with_element(dtype, [&](auto element) {
    using E = decltype(element);
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t d = 0; d < D; ++d) sum += at<E>(in, row * D + d) * at<E>(in, row * D + d);
      const float scale = 1.0F / std::sqrt(sum / static_cast<float>(D) + static_cast<float>(eps));
      for (std::int64_t d = 0; d < D; ++d) {
        put<E>(out, row * D + d, at<E>(in, row * D + d) * scale * at<E>(norm, d));
      }
    }
  });
}

void narrow_product(gatefold_dtype dtype, const Bytes& in, const Bytes& w, const Bytes& b, std::int64_t rows,
                    std::int64_t width, std::int64_t columns, std::vector<float>& out) {
  with_element(dtype, [&](auto element) {
    using E = decltype(element);
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t j = 0; j < columns; ++j) {
        float sum = at<E>(b, j);
#pragma omp simd reduction(+ : sum)
        for (std::int64_t r = 0; r < width; ++r) sum += at<E>(in, row * width + r) * at<E>(w, r * columns + j);
        out[row * columns + j] = sum;
      }
    }
  });
}

std::vector<float> core_table(const SwapFfnData& data, const char* w, const char* b, std::int64_t columns,
                              float offset) {
  const std::int64_t C = data.desc().cores;
  const std::int64_t E = data.desc().core_embed_size;
  std::vector<float> table(static_cast<std::size_t>(C * columns));
  with_element(data.desc().dtype, [&](auto element) {
    using Type = decltype(element);
    for (std::int64_t c = 0; c < C; ++c) {
      for (std::int64_t j = 0; j < columns; ++j) {
        float sum = at<Type>(data.weight(b), j) + offset;
        for (std::int64_t e = 0; e < E; ++e) {
          sum += at<Type>(data.weight("core_embed"), c * E + e) * at<Type>(data.weight(w), j * E + e);
        }
        table[c * columns + j] = sum;
      }
    }
  });
  return table;
}

void softmax_rows(std::vector<float>& table, std::int64_t columns) {
  for (auto row = table.begin(); row != table.end(); row += columns) {
    const float largest = *std::max_element(row, row + columns);
    float sum = 0.0F;
    for (std::int64_t k = 0; k < columns; ++k) sum += row[k] = std::exp(row[k] - largest);
    for (std::int64_t k = 0; k < columns; ++k) row[k] /= sum;
  }
}

void start_rows(const SwapFfnData& data, const std::vector<float>& scale, const std::vector<float>& shift, Bytes& s) {
  const SwapFfnDesc& c = data.desc();
  const std::int64_t D = c.hidden_size;
  with_element(c.dtype, [&](auto element) {
    using E = decltype(element);
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < data.rows(); ++row) {
      const std::int64_t table = row % c.cores * D;
      for (std::int64_t d = 0; d < D; ++d) {
        put<E>(s, row * D + d, at<E>(data.x, row / c.cores * D + d) * scale[table + d] + shift[table + d]);
      }
    }
  });
}

void pool_cores(const SwapFfnData& data, const std::vector<float>& alpha, const Bytes& s, Bytes& pooled) {
  const SwapFfnDesc& c = data.desc();
  const std::int64_t D = c.hidden_size;
  const std::int64_t K = c.collapse_heads;
  with_element(c.dtype, [&](auto element) {
    using E = decltype(element);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < data.batch() * K; ++i) {
      std::vector<float> sums(static_cast<std::size_t>(D));
      for (std::int64_t core = 0; core < c.cores; ++core) {
        const std::int64_t row = (i / K * c.cores + core) * D;
        for (std::int64_t d = 0; d < D; ++d) sums[d] += alpha[core * K + i % K] * at<E>(s, row + d);
      }
      for (std::int64_t d = 0; d < D; ++d) put<E>(pooled, i * D + d, sums[d]);
    }
  });
}

void collapse_heads(const SwapFfnData& data, const Bytes& pooled, Bytes& q) {
  const SwapFfnDesc& c = data.desc();
  const std::int64_t D = c.hidden_size;
  const std::int64_t K = c.collapse_heads;
  const std::int64_t Rc = c.collapse_width;
  const Bytes& basis = data.weight("basis");
  with_element(c.dtype, [&](auto element) {
    using E = decltype(element);
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < Rc; ++r) {
      for (std::int64_t b = 0; b < data.batch(); ++b) {
        float sum = 0.0F;
        for (std::int64_t k = 0; k < K; ++k) {
#pragma omp simd reduction(+ : sum)
          for (std::int64_t d = 0; d < D; ++d) {
            sum += at<E>(basis, (k * Rc + r) * D + d) * at<E>(pooled, (b * K + k) * D + d);
          }
        }
        put<E>(q, b * Rc + r, sum);
      }
    }
  });
}

void silu_in_place(gatefold_dtype dtype, std::int64_t count, Bytes& values) {
  with_element(dtype, [&](auto element) {
    using E = decltype(element);
    for (std::int64_t i = 0; i < count; ++i) {
      const float v = at<E>(values, i);
      put<E>(values, i, v / (1.0F + std::exp(-v)));
    }
  });
}

double relative_l2(gatefold_dtype dtype, const Bytes& a, const Bytes& b) {
  double error = 0.0;
  double square = 0.0;
  const auto count = static_cast<std::int64_t>(a.size()) / size_of(dtype);
  with_element(dtype, [&](auto element) {
    using E = decltype(element);
    for (std::int64_t i = 0; i < count; ++i) {
      const double truth = at<E>(b, i);
      error += (at<E>(a, i) - truth) * (at<E>(a, i) - truth);
      square += truth * truth;
    }
  });
  return std::sqrt(error / square);
}

}  // namespace gatefold::cli
