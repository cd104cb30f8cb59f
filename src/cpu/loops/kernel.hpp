#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

// The products of a panel: some rows of weights with some rows of x. One kernel for each element type and instruction
// set; what they have in common is the template of nest.hpp.
namespace gatefold::cpu {

// Rows of weights that a tile takes at a time.
constexpr std::int64_t tile_rows_of_weights = 4;

struct PanelProduct {
  const std::byte* const* rows = nullptr;  // of weights: row_count pointers, a multiple of tile_rows_of_weights
  std::int64_t row_count = 0;
  const std::byte* x = nullptr;
  std::int64_t x_stride = 0;  // bytes from one token to the next
  std::int64_t tokens = 0;
  std::int64_t depth = 0;  // elements of a row, > 0

  // Out: sums[row / 4][token][row % 4]. Each is the same whatever rows, tokens and threads there are beside it.
  float* sums = nullptr;
  std::byte* scratch = nullptr;  // scratch_bytes of the kernel, aligned to 64
};

struct Kernel {
  const char* name;  // of the instruction set
  DType dtype;
  std::int64_t tile_tokens;
  std::int64_t scratch_bytes;
  void (*multiply)(const PanelProduct& product);
};

// Those that this machine can run with the element type, fastest first. The last needs nothing of the machine.
const std::vector<const Kernel*>& kernels_for(DType dtype);

// A list without functions of its own: the sources that hold kernels are compiled for one instruction set each.
struct KernelList {
  const Kernel* first = nullptr;
  int count = 0;
};
KernelList portable_kernels();
KernelList avx2_kernels();
KernelList avx512_kernels();
KernelList avx512_bf16_kernels();

}  // namespace gatefold::cpu
