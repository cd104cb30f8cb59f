#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/problem.hpp"
#include "core/status.hpp"
#include "cuda/common/device.hpp"

// Several MLPs of a Swap-FFN step, one after the other, in one launch (chain.cuh).
namespace gatefold::cuda::sm90 {

// Where a chain's blocks tell each other what they have done: counters, which only grow during a step, and the sums of
// squares that an MLP leaves for the next one's 1/rms. All of it lies in the step's workspace.
struct ChainState {
  static constexpr std::int64_t tile_rows = 128;
  static constexpr std::int64_t tile_columns = 64;  // of down
  static constexpr std::int64_t most_rows = 2048;   // a chain takes no more
  static constexpr int row_blocks = most_rows / tile_rows;
  static constexpr int apart = 32;  // counters, so that each has 128 bytes to itself
  static constexpr int counters = 2 * row_blocks * apart;

  std::uint32_t* h_stored = nullptr;  // of each row block: the warpgroups' tiles of h that have reached memory
  std::uint32_t* s_stored = nullptr;  // the same of s
  double* squares = nullptr;          // [D / 64, rows], whole row blocks: of each of down's tiles, of what it stored

  // Rows of the squares of one of down's tiles: whole row blocks.
  static constexpr std::int64_t squares_stride(std::int64_t rows) {
    return (rows + tile_rows - 1) / tile_rows * tile_rows;
  }
  static std::int64_t counter_bytes() { return counters * static_cast<std::int64_t>(sizeof(std::uint32_t)); }
  static std::int64_t squares_bytes(std::int64_t rows, std::int64_t columns);
};

// s -> gate_up, times 1/rms of each row -> h -> down -> s, and so on.
struct Chain {
  Problem gate_up, down;
  Operands gate_up_run, down_run;      // down's x is gate_up's output, and its output gate_up's x
  ChainState state;                    // the counters were zeroed before the step's first MLP
  const float* inverse_rms = nullptr;  // [rows], of the first MLP's input; null: as the MLP before left its squares
  std::uint32_t first_mlp = 0;         // so many of the step have passed
  int mlps = 0;
  double eps = 0.0;
};

// Whether one launch takes MLPs of so many rows: each block has one tile of each product at most, and the device, which
// is the current one, holds all of them at a time.
bool takes_chain(const Problem& gate_up, const Problem& down, std::int64_t rows, const DeviceProperties& device);

// Of one that is taken. A cooperative launch: its blocks wait for one another.
Status run_chain(const Chain& chain, const DeviceProperties& device, cudaStream_t stream);

// The kernel of each element type, in a translation unit of its own.
struct ChainKernel {
  Status (*resident_clusters)(const DeviceProperties& device, int& clusters);
  int (*clusters)(const Problem& gate_up, const Problem& down, std::int64_t rows, int resident);  // that it wants
  Status (*launch)(const Chain& chain, const DeviceProperties& device, cudaStream_t stream);
};
const ChainKernel& bf16_chain_kernel();
const ChainKernel& fp16_chain_kernel();

}  // namespace gatefold::cuda::sm90
