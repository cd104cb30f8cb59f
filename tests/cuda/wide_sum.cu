#include "cuda/sm90/wide_sum.cuh"

#include "cuda_support.hpp"
#include "wide_sum.hpp"

namespace gatefold::test {
namespace {

constexpr unsigned threads = 128;

__global__ void sum_rows(const double* first, const double* terms, std::size_t rows, std::size_t number, float* roots) {
  const std::size_t row = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= rows) return;
  cuda::sm90::WideSum sum(first[row]);
  constexpr int batch = 16;
  for (std::size_t i = 0; i < number; i += batch) {
    double some[batch];
    for (int j = 0; j < batch; ++j) some[j] = terms[(i + j) * rows + row];
    sum.add(some);
  }
  roots[row] = sum.inverse_root();
}

Allocation uploaded(const std::vector<double>& values) {
  Allocation result(device_memory(), values.size() * sizeof(double));
  device_memory().upload(result.get(), values.data(), values.size() * sizeof(double));
  return result;
}

}  // namespace

std::vector<float> wide_inverse_roots(const std::vector<double>& first, const std::vector<double>& terms) {
  const std::size_t rows = first.size();
  const Allocation on_device_first = uploaded(first);
  const Allocation on_device_terms = uploaded(terms);
  std::vector<float> roots(rows);
  const Allocation on_device_roots(device_memory(), rows * sizeof(float));
  sum_rows<<<static_cast<unsigned>((rows + threads - 1) / threads), threads>>>(
      reinterpret_cast<const double*>(on_device_first.get()), reinterpret_cast<const double*>(on_device_terms.get()),
      rows, terms.size() / rows, reinterpret_cast<float*>(on_device_roots.get()));
  require(cudaGetLastError(), "sum_rows");
  device_memory().download(roots.data(), on_device_roots.get(), rows * sizeof(float));
  return roots;
}

}  // namespace gatefold::test
