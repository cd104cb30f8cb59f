#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gatefold/gatefold.h"

// The passes of the unfused Swap-FFN step on a GPU, each a kernel as frameworks have them: it reads whole tensors and
// writes one, rounded to the element type where that isn't fp32. Each returns the launch's error. T = B C rows.
namespace gatefold::cli::unfused {

struct Launch {
  gatefold_dtype dtype{};
  cudaStream_t stream = nullptr;
};

// s [T, D] = x [B, D] * scale [C, D] + shift
cudaError_t start(const Launch& launch, const void* x, const float* scale, const float* shift, void* s,
                  std::int64_t rows, std::int64_t cores, std::int64_t columns);
// out = norm * in / rms(in)
cudaError_t rms_norm(const Launch& launch, const void* in, const void* norm, void* out, std::int64_t rows,
                     std::int64_t columns, float eps);
// out [T, columns] = in [T, width] . w [width, columns] + b, fp32
cudaError_t narrow_product(const Launch& launch, const void* in, const void* w, const void* b, float* out,
                           std::int64_t rows, std::int64_t width, std::int64_t columns);
cudaError_t sigmoid(const Launch& launch, float* values, std::int64_t count);
cudaError_t threshold(const Launch& launch, const float* values, std::uint8_t* above_half, std::int64_t count);
cudaError_t argmax(const Launch& launch, const float* logits, std::uint8_t* choice, std::int64_t rows);
cudaError_t lane_of_map(const Launch& launch, const std::uint8_t* map, const std::uint8_t* choice, std::uint8_t* bank,
                        std::int64_t rows);
cudaError_t exchange_lanes(const Launch& launch, const std::uint8_t* swap, const std::uint8_t* choice,
                           const std::uint8_t* bank, std::uint8_t* map, std::int64_t rows);
// taken = ram[row, bank]; ram[row, bank] = s where swap; s = taken where swap
cudaError_t gather(const Launch& launch, const void* ram, const std::uint8_t* bank, void* taken, std::int64_t rows,
                   std::int64_t columns);
cudaError_t scatter(const Launch& launch, const void* s, const std::uint8_t* swap, const std::uint8_t* bank, void* ram,
                    std::int64_t rows, std::int64_t columns);
cudaError_t take(const Launch& launch, const void* taken, const std::uint8_t* swap, void* s, std::int64_t rows,
                 std::int64_t columns);
// pooled [B, K, D] = sum over cores of alpha [C, K] s
cudaError_t pool(const Launch& launch, const void* s, const float* alpha, void* pooled, std::int64_t batch,
                 std::int64_t cores, std::int64_t heads, std::int64_t columns);
// q [B, Rc] = sum over heads of basis [K, Rc, D] . pooled
cudaError_t collapse(const Launch& launch, const void* basis, const void* pooled, void* q, std::int64_t batch,
                     std::int64_t heads, std::int64_t width, std::int64_t columns);
cudaError_t silu(const Launch& launch, void* values, std::int64_t count);

}  // namespace gatefold::cli::unfused
