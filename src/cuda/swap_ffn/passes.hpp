#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

// The kernels of a Swap-FFN step beside its products, and those that prepare its weights. Each call enqueues one kernel
// on the current device. Rows are the B C cores of all sequences; s [rows, D] and ram [rows, 4, D] are of the step's
// element type, as are the weights that are not said to be fp32.
namespace gatefold::cuda::swap_ffn {

struct Sizes {
  DType dtype = DType::fp32;
  std::int64_t batch = 0;
  std::int64_t hidden_size = 0;     // D
  std::int64_t cores = 0;           // C
  std::int64_t router_width = 0;    // R
  std::int64_t collapse_heads = 0;  // K
  std::int64_t collapse_width = 0;  // Rc
  double eps = 0.0;

  std::int64_t rows() const { return batch * cores; }
};

struct Queue {
  cudaStream_t stream = nullptr;
  int device = 0;
};

// s = x * core_scale + core_shift, in fp32, rounded once. The tables are fp32 [C, D]. And counters [count] = 0.
Status start(const Sizes& sizes, const std::byte* x, const float* core_scale, const float* core_shift, std::byte* s,
             std::uint32_t* counters, int count, const Queue& queue);

// An event until its first MLP: the router's sums, the decisions, the exchange with ram, and 1/rms of the rows that
// follow from it, fp32 [rows].
struct Route {
  std::byte* s = nullptr;
  std::byte* ram = nullptr;
  std::uint8_t* stream_map = nullptr;   // [rows]
  std::uint8_t* decisions = nullptr;    // [rows]; may be null
  float* inverse_rms = nullptr;         // [rows]
  const std::byte* router_w = nullptr;  // [R, D]
  const float* router_norm = nullptr;   // [D], and the rest of fp32 as well
  const float* swap_w = nullptr;        // [R]
  const float* swap_b = nullptr;        // [1]
  const float* bank_w = nullptr;        // [R, 4]
  const float* bank_b = nullptr;        // [4]
};
Status route(const Sizes& sizes, const Route& operands, const Queue& queue);

// 1/rms of each row of s.
Status measure(const Sizes& sizes, const std::byte* s, float* inverse_rms, const Queue& queue);

// pooled [B, K, D] = sum over cores of alpha [C, K] s, all but s in fp32.
Status pool(const Sizes& sizes, const std::byte* s, const float* alpha, float* pooled, const Queue& queue);

// q [B, Rc] = silu(sum over heads and columns of basis [K, Rc, D] pooled), in fp32.
Status collapse(const Sizes& sizes, const std::byte* basis, const float* pooled, float* q, const Queue& queue);

// delta [B, D] = q . decoder [D, Rc]^T, rounded once.
Status write_delta(const Sizes& sizes, const std::byte* decoder, const float* q, std::byte* delta, const Queue& queue);

// ---- the weights, once ----

// out = matrix [rows, columns] with each column scaled by scale [columns], rounded once.
Status fold_columns(DType dtype, const std::byte* matrix, const std::byte* scale, std::int64_t rows,
                    std::int64_t columns, std::byte* out, const Queue& queue);

Status widen(DType dtype, const std::byte* values, std::int64_t count, float* out, const Queue& queue);

// out [C, columns] = core_embed [C, E] . w [columns, E]^T + b [columns] + offset, in double precision, rounded once.
struct Affine {
  const std::byte* core_embed = nullptr;
  const std::byte* w = nullptr;
  const std::byte* b = nullptr;
  std::int64_t cores = 0, columns = 0, depth = 0;
  double offset = 0.0;
};
Status core_table(DType dtype, const Affine& affine, float* out, const Queue& queue);

// The same, then softmax over the columns.
Status core_softmax(DType dtype, const Affine& affine, float* out, const Queue& queue);

Status copy(std::byte* to, const std::byte* from, std::int64_t bytes, const Queue& queue);

}  // namespace gatefold::cuda::swap_ffn
