#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layout.hpp"
#include "core/types.hpp"

namespace gatefold {

// Which bias vectors a run is given. Of a packed layout `gate` stands for the one vector of both halves.
struct Biases {
  bool gate = false;
  bool up = false;
  bool down = false;

  bool any() const { return gate || up || down; }
};

// The types of the elements. gemm_gated's gate values, and all that act_and_mul reads, are of x's; biases are of the
// weights'. A description has one type for all of them, so far.
struct ElementTypes {
  DType x = DType::fp32;
  DType weights = DType::fp32;
  DType out = DType::fp32;

  static constexpr ElementTypes all(DType type) { return {type, type, type}; }
  constexpr bool alike() const { return x == weights && x == out; }
};

// A validated description: gatefold_desc with every leading dimension filled in.
struct Problem {
  Op op = Op::gemm;
  ElementTypes types;
  Device device = Device::cpu;
  Layout layout;
  Activation activation;
  std::int64_t hidden_size = 0;        // D
  std::int64_t intermediate_size = 0;  // F
  std::int64_t ld_x = 0;
  std::int64_t ld_gate = 0;
  std::int64_t ld_up = 0;
  std::int64_t ld_down = 0;
  std::int64_t ld_out = 0;
  Biases biases;
  bool row_scale = false;  // gate_up and gemm: Operands::row_scale is given; no description asks for it
  // The kernel before a run begins only after the weights have been written: they may be read before it ends. No
  // description promises that.
  bool weights_settled = false;
  std::int64_t chunk_tokens = 0;  // mlp: computed so many tokens at a time; 0: all at once
  bool batch_invariant = false;   // the same bits for a row in any batch
  // CPU: gate_up's output, or gemm's x, is an mlp's h, which passes between the same kernel's two products alone: it
  // may have that kernel's own order. No description asks for it.
  bool own_h = false;
  // Of such a gate_up: Operands::spare is given, and has room for the elements of x's rows.
  bool has_spare = false;
};

// Validated pointers of one run: gatefold_args, in bytes. For packed layouts `up` is null and `gate` holds both halves.
struct Operands {
  static constexpr int unknown_device = -1;

  std::int64_t tokens = 0;
  const std::byte* x = nullptr;
  const std::byte* gate = nullptr;
  const std::byte* up = nullptr;
  const std::byte* down = nullptr;
  std::byte* out = nullptr;
  std::byte* workspace = nullptr;
  std::size_t workspace_size = 0;
  void* stream = nullptr;
  const std::byte* gate_bias = nullptr;  // null where the problem has none
  const std::byte* up_bias = nullptr;
  const std::byte* down_bias = nullptr;
  std::byte* spare = nullptr;        // may be written until the run ends: an mlp's y, which is not there yet
  const float* row_scale = nullptr;  // [tokens]: each token's sums are multiplied by its own, before any bias
  // CUDA: the kernel before this run's in the stream writes none of the weights, and begun only when all before it had
  // ended. So they may be read before that kernel has ended (Executor::holds_back_the_next).
  bool weights_settled = false;
  int device = unknown_device;  // CUDA: the one that owns all of them, if that is known; then it is current, too
};

// One half of a pair (weight rows, or act_and_mul's columns) whatever the layout: line j begins at
// base + map(j) * stride bytes, where the stride is ld * size for rows and size for columns.
struct HalfView {
  const std::byte* base = nullptr;
  LineMap map;
  std::int64_t ld = 0;  // elements from one row of the tensor to the next
};

inline HalfView half_view(const Problem& problem, const Operands& operands, Half half) {
  const bool second_tensor = half == Half::up && !problem.layout.packed();
  return {second_tensor ? operands.up : operands.gate, problem.layout.map(half, problem.intermediate_size),
          second_tensor ? problem.ld_up : problem.ld_gate};
}

// The bias of one half's sums, or of gemm's and gemm_gated's (the half up): element j is element map(j) of base, which
// is null where there is none. A packed layout's one vector is in the order of the weight's rows.
struct BiasView {
  const std::byte* base = nullptr;
  LineMap map;
};

inline BiasView bias_view(const Problem& problem, const Operands& operands, Half half) {
  const bool second_vector = half == Half::up && !problem.layout.packed();
  return {second_vector ? operands.up_bias : operands.gate_bias, problem.layout.map(half, problem.intermediate_size)};
}

}  // namespace gatefold
