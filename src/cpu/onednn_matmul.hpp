#pragma once

#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "core/types.hpp"

// One oneDNN matrix product with its post-ops. This header and its source are all that knows oneDNN, and the only place
// where its versions 2 (Debian 12) and 3 (Ubuntu 24.04) differ.
namespace gatefold::cpu {

// Elements of a matrix's row, at most. oneDNN's kernels count elements and bytes in an int, rounded up to their blocks:
// 2.6.3 divided by 2^32 columns, of which the int made 0. Rows that alternate lie two of them apart: 2^30 bytes in
// fp32.
constexpr std::int64_t longest_row = std::int64_t{1} << 27;

// out [rows, columns] = x [rows, depth] . weights [columns, depth]^T, then the epilogue.
struct MatmulShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t ld_x = 0;
  std::int64_t ld_weights = 0;
  std::int64_t ld_out = 0;
  DType in = DType::fp32;
  DType out = DType::fp32;
};

// What happens to a sum before it is rounded to the output's type and stored.
enum class Epilogue : std::uint8_t {
  none,
  activate,  // act(sum)
  multiply,  // activated * sum, where `activated` is fp32 in memory; ld_out = columns, or oneDNN 2.6 takes 300 x as
             // long
};

// Whether a post-op computes the activation, and the product with up, as well as cpu::activate and cpu::multiply do.
// Measured on oneDNN 2.6 and 3.2: relu and clip turn NaN into a number, and tanh-GELU forms 1 + tanh(z), of which no
// digit is left where tanh(z) is close to -1. docs/kernels/cpu.md has the figures.
bool can_activate(ActivationKind kind);
bool can_multiply(ActivationKind kind);

// Immutable: any number of threads may run one at a time, each with a scratchpad of its own.
class Matmul {
 public:
  struct Buffers {
    const std::byte* x = nullptr;
    const std::byte* weights = nullptr;
    const float* activated = nullptr;  // multiply only: packed [rows, columns]
    std::byte* out = nullptr;
    std::byte* scratchpad = nullptr;
  };

  Matmul() = default;

  // May throw dnnl::error.
  Matmul(const MatmulShape& shape, Epilogue epilogue, const Activation& activation);

  std::size_t scratchpad_size() const { return scratchpad_.get_size(); }
  const std::string& kernel() const { return kernel_; }    // oneDNN's name for what it chose
  bool better_widened() const { return better_widened_; }  // bf16 is better multiplied in fp32 than by this kernel

  // False if oneDNN failed, which it does only when memory runs out. What is allocated: a stream and up to five memory
  // handles here, and inside oneDNN its argument map and, where its kernel is the plain GEMM, buffers for packed
  // blocks.
  bool run(const Buffers& buffers) const noexcept;

 private:
  dnnl::matmul primitive_;
  dnnl::memory::desc x_;
  dnnl::memory::desc weights_;
  dnnl::memory::desc out_;
  dnnl::memory::desc activated_;
  dnnl::memory::desc scratchpad_;
  std::string kernel_;
  bool better_widened_ = false;
  int multiply_index_ = -1;  // of the post-op that reads `activated`
};

}  // namespace gatefold::cpu
