#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gatefold/gatefold.h"

// The two element-wise passes on a GPU, for what frameworks do without fusion: each reads and writes whole tensors, 16
// bytes at a time where the layout allows it. Both return the launch's error.
namespace gatefold::cli {

// One half of the operands, [rows, columns]: column c of a row lies at c / run * 2 run + c % run, and rows are
// `row_stride` elements apart. run = columns is a half without interleaving.
struct OperandHalf {
  const void* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t run = 0;
};

struct PassShape {
  gatefold_dtype dtype{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

struct PassActivation {
  gatefold_activation kind{};
  float limit = 0.0F;
  float alpha = 0.0F;
  float beta = 0.0F;
};

// out = act(gate), and out = activated * up. `out` and `activated` are packed [rows, columns].
cudaError_t enqueue_activation(const PassShape& shape, const PassActivation& activation, const OperandHalf& gate,
                               void* out, cudaStream_t stream);
cudaError_t enqueue_multiplication(const PassShape& shape, const PassActivation& activation, const void* activated,
                                   const OperandHalf& up, void* out, cudaStream_t stream);

}  // namespace gatefold::cli
