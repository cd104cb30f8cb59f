#include "cli/block.hpp"

#include "checkpoint/input_error.hpp"

namespace gatefold::cli {
namespace {

void require_fits(const char* what, std::int64_t rows, std::int64_t columns) {
  std::int64_t elements = 0;
  // 16 bytes an element: both halves of the widest type, and then some
  if (__builtin_mul_overflow(rows, columns, &elements) || elements > INT64_MAX / 16) {
    checkpoint::throw_input_error(what, ": ", rows, " x ", columns, " elements overflow 64-bit sizes");
  }
}

}  // namespace

void require_addressable(const Block& block) {
  require_at_least("tokens", block.tokens, 0);
  require_at_least("hidden_size", block.hidden_size, 0);
  require_at_least("intermediate_size", block.intermediate_size, 0);
  require_fits("tokens x hidden_size", block.tokens, block.hidden_size);
  require_fits("tokens x intermediate_size", block.tokens, block.intermediate_size);
  require_fits("intermediate_size x hidden_size", block.intermediate_size, block.hidden_size);
}

HalfRows half_rows(const Block& block, bool up_half) {
  const std::int64_t D = block.hidden_size;
  const bool interleaved = block.layout.block() != 0;
  const bool strided = block.layout.block() == 0 || (block.layout.block() == 1 && !block.biases.gate);
  return {strided, weight_row(block, up_half, 0) * D, interleaved ? 2 * D : D};
}

const std::byte* half_weights(const Block& block, const Tensors& tensors, bool up_half) {
  if (!block.layout.packed()) return up_half ? tensors.w_up : tensors.w_gate;
  return tensors.w_gate == nullptr ? nullptr : tensors.w_gate + half_rows(block, up_half).offset * block.element();
}

bool has_half_bias(const Block& block, bool up_half) {
  return up_half && !block.layout.packed() ? block.biases.up : block.biases.gate;
}

const std::byte* half_bias(const Block& block, const Tensors& tensors, bool up_half) {
  if (!block.layout.packed()) return up_half ? tensors.b_up : tensors.b_gate;
  return tensors.b_gate == nullptr ? nullptr : tensors.b_gate + weight_row(block, up_half, 0) * block.element();
}

std::int64_t weight_row(const Block& block, bool up_half, std::int64_t row) {
  if (!block.layout.packed()) return row;
  const gatefold_layout kind = block.layout.kind();
  const bool gate_first = kind == GATEFOLD_LAYOUT_GATE_UP || kind == GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP;
  const std::int64_t run = block.layout.block() != 0 ? block.layout.block() : block.intermediate_size;
  const std::int64_t shift = up_half == gate_first ? run : 0;
  return run == 0 ? 0 : row / run * 2 * run + row % run + shift;
}

}  // namespace gatefold::cli
