#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/options.hpp"
#include "gatefold/gatefold.hpp"

// One MLP and where its tensors lie.
namespace gatefold::cli {

struct Block {
  gatefold_device device = GATEFOLD_DEVICE_CPU;
  gatefold_dtype dtype = GATEFOLD_DTYPE_BF16;
  Layout layout = Layout::separate();
  Activation activation = Activation::silu();
  std::int64_t hidden_size = 0;        // D
  std::int64_t intermediate_size = 0;  // F
  std::int64_t tokens = 0;             // T
  std::string implementation{};        // forced by name, for the ops that have one of that name
  Biases biases{};                     // of a packed layout `gate` stands for the one vector of both halves
  std::int64_t chunk_tokens = 0;       // mlp as one op: so many tokens at a time; 0: all
  bool batch_invariant = false;        // a row's bits hang on nothing but the row

  std::int64_t element() const { return size_of(dtype); }
  std::size_t bytes(std::int64_t rows, std::int64_t columns) const {
    return static_cast<std::size_t>(rows * columns * element());
  }
  std::size_t x_bytes() const { return bytes(tokens, hidden_size); }
  std::size_t h_bytes() const { return bytes(tokens, intermediate_size); }            // also gate's and up's
  std::size_t weight_bytes() const { return bytes(intermediate_size, hidden_size); }  // of one of the three
};

// Throws checkpoint::InputError where a tensor's size in bytes leaves 63 bits.
void require_addressable(const Block& block);

// Addresses of the block's tensors, all on the device or all on the host. What a way does not use is null.
struct Tensors {
  const std::byte* x = nullptr;       // [T, D]
  const std::byte* w_gate = nullptr;  // [F, D], or [2F, D] of a packed layout
  const std::byte* w_up = nullptr;    // [F, D], or null
  const std::byte* w_down = nullptr;  // [D, F]
  const std::byte* b_gate = nullptr;  // [F], or [2F] of a packed layout; the block's biases say which are there
  const std::byte* b_up = nullptr;    // [F]
  const std::byte* b_down = nullptr;  // [D]
  std::byte* gate = nullptr;          // [T, F], or [T, 2F] of a packed layout
  std::byte* up = nullptr;            // [T, F]
  std::byte* activated = nullptr;     // [T, F]
  std::byte* h = nullptr;             // [T, F]
  std::byte* y = nullptr;             // [T, D]
  WorkspaceView workspace{};
};

// Where one half of packed weights lies: rows [F, D] that begin `offset` elements in, `ld` apart. Interleaved blocks of
// more than one row have no such form, and with a bias those of one row don't either: a half's bias isn't contiguous.
struct HalfRows {
  bool strided = true;
  std::int64_t offset = 0;
  std::int64_t ld = 0;
};
HalfRows half_rows(const Block& block, bool up_half);

// Where those rows begin.
const std::byte* half_weights(const Block& block, const Tensors& tensors, bool up_half);

// One half's bias, [F], or null: of a layout with strided halves.
bool has_half_bias(const Block& block, bool up_half);
const std::byte* half_bias(const Block& block, const Tensors& tensors, bool up_half);

// The row of the stored weights that holds row `row` of one half; for packed layouts, of the one tensor.
std::int64_t weight_row(const Block& block, bool up_half, std::int64_t row);

}  // namespace gatefold::cli
