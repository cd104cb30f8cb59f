#include <cmath>

#include "cuda/common/error.hpp"
#include "cuda/common/launch.hpp"
#include "cuda/swap_ffn/passes.hpp"
#include "cuda/swap_ffn/piece.cuh"

// What depends on the weights alone. Once a model: an element a thread, and no thought of speed.
namespace gatefold::cuda::swap_ffn {

constexpr int prepare_threads = 256;

__device__ __forceinline__ std::int64_t thread_of_grid() {
  return std::int64_t{blockIdx.x} * prepare_threads + threadIdx.x;
}

// The product of two 16-bit elements is exact in fp32, and that of two of fp32 is rounded here.
template <class Element>
__global__ void __launch_bounds__(prepare_threads)
    fold_kernel(const std::byte* matrix, const std::byte* scale, std::byte* out, std::int64_t count,
                std::int64_t columns) {
  const std::int64_t i = thread_of_grid();
  if (i >= count) return;
  const float weight = to_float(reinterpret_cast<const Element*>(matrix)[i]);
  const float by = to_float(reinterpret_cast<const Element*>(scale)[i % columns]);
  reinterpret_cast<Element*>(out)[i] = from_float<Element>(weight * by);
}

template <class Element>
__global__ void __launch_bounds__(prepare_threads)
    widen_kernel(const std::byte* values, float* out, std::int64_t count) {
  const std::int64_t i = thread_of_grid();
  if (i < count) out[i] = to_float(reinterpret_cast<const Element*>(values)[i]);
}

template <class Element>
__device__ double affine_element(const Affine& a, std::int64_t core, std::int64_t column) {
  const auto* const embed = reinterpret_cast<const Element*>(a.core_embed) + core * a.depth;
  const auto* const w = reinterpret_cast<const Element*>(a.w) + column * a.depth;
  double sum = static_cast<double>(to_float(reinterpret_cast<const Element*>(a.b)[column])) + a.offset;
  for (std::int64_t e = 0; e < a.depth; ++e) {
    sum += static_cast<double>(to_float(embed[e])) * static_cast<double>(to_float(w[e]));
  }
  return sum;
}

template <class Element>
__global__ void __launch_bounds__(prepare_threads) core_table_kernel(const __grid_constant__ Affine a, float* out) {
  const std::int64_t i = thread_of_grid();
  if (i < a.cores * a.columns) out[i] = static_cast<float>(affine_element<Element>(a, i / a.columns, i % a.columns));
}

// A thread for each core. The logits are computed again each time they are wanted: there may be any number.
template <class Element>
__global__ void __launch_bounds__(prepare_threads) core_softmax_kernel(const __grid_constant__ Affine a, float* out) {
  const std::int64_t core = thread_of_grid();
  if (core >= a.cores) return;
  double largest = affine_element<Element>(a, core, 0);
  for (std::int64_t k = 1; k < a.columns; ++k) {
    const double logit = affine_element<Element>(a, core, k);
    if (logit > largest) largest = logit;
  }
  double sum = 0.0;
  for (std::int64_t k = 0; k < a.columns; ++k) sum += exp(affine_element<Element>(a, core, k) - largest);
  for (std::int64_t k = 0; k < a.columns; ++k) {
    out[core * a.columns + k] = static_cast<float>(exp(affine_element<Element>(a, core, k) - largest) / sum);
  }
}

namespace {

template <class... Parameters, class... Arguments>
Status launch_for_each(void (*kernel)(Parameters...), std::int64_t count, const Queue& queue,
                       const Arguments&... arguments) {
  unsigned blocks = 0;
  if (Status status = block_count(count, prepare_threads, blocks); !status.ok()) return status;
  return launch_kernel(kernel, {.grid = dim3(blocks), .block = dim3(prepare_threads)}, queue.device, queue.stream,
                       arguments...);
}

}  // namespace

Status fold_columns(DType dtype, const std::byte* matrix, const std::byte* scale, std::int64_t rows,
                    std::int64_t columns, std::byte* out, const Queue& queue) {
  return with_element(dtype, [&](auto element) {
    return launch_for_each(fold_kernel<typename decltype(element)::type>, rows * columns, queue, matrix, scale, out,
                           rows * columns, columns);
  });
}

Status widen(DType dtype, const std::byte* values, std::int64_t count, float* out, const Queue& queue) {
  return with_element(dtype, [&](auto element) {
    return launch_for_each(widen_kernel<typename decltype(element)::type>, count, queue, values, out, count);
  });
}

Status core_table(DType dtype, const Affine& affine, float* out, const Queue& queue) {
  return with_element(dtype, [&](auto element) {
    return launch_for_each(core_table_kernel<typename decltype(element)::type>, affine.cores * affine.columns, queue,
                           affine, out);
  });
}

Status core_softmax(DType dtype, const Affine& affine, float* out, const Queue& queue) {
  return with_element(dtype, [&](auto element) {
    return launch_for_each(core_softmax_kernel<typename decltype(element)::type>, affine.cores, queue, affine, out);
  });
}

Status copy(std::byte* to, const std::byte* from, std::int64_t bytes, const Queue& queue) {
  return status_of(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, queue.stream),
                   "cudaMemcpyAsync", queue.device);
}

}  // namespace gatefold::cuda::swap_ffn
