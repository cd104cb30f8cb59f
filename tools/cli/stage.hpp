#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/backend.hpp"
#include "cli/block.hpp"

// What a way of computing the block is made of: one library op, or one plain pass.
namespace gatefold::cli {

// Rows of the outputs that are held against the truth: first, first + stride, ...
struct RowSample {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;
};

// At most `limit` of `rows` rows, evenly spaced, the last one among them.
RowSample sample_rows(std::int64_t rows, std::int64_t limit);

// Bytes and operations that a stage, or several, can't do without: each tensor read or written once.
struct Cost {
  double flops = 0.0;
  double bytes = 0.0;

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

// What a stage does, and leaves in memory.
enum class Leaves : std::uint8_t { between, h, y };  // gate, up or activated, which lie between x and h; h; or y
struct Work {
  Cost cost;
  Leaves leaves = Leaves::h;
  std::int64_t bytes_left = 0;
  std::int64_t bytes_inside = 0;  // written besides, inside the stage: an mlp's h
};
// [tokens, columns] from sums of `length` products.
Work product_work(const Block& block, std::int64_t columns, std::int64_t length, Leaves leaves);
Work gate_up_work(const Block& block);

class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  virtual std::string implementation() const = 0;
  virtual Work work() const = 0;
  virtual std::size_t workspace_size() const { return 0; }
  virtual std::string instruction_set() const { return {}; }  // of products on the CPU; "" where there are none
  virtual void enqueue(const Tensors& tensors, Backend& backend) const = 0;

  // What the stage does once before it is timed, on buffers like those of the calls. Overwrites its output.
  virtual void prepare(const Tensors& /*tensors*/, Backend& /*backend*/) const {}

  // Holds the stage's output against its inputs as they are stored, both on the host. Empty for what is not the
  // library's.
  virtual std::optional<gatefold_error_report> check(const Tensors& /*host*/, const RowSample& /*rows*/,
                                                     gatefold_data /*data*/) const {
    return {};
  }
};
using StagePtr = std::shared_ptr<const Stage>;

// Library ops. Each throws gatefold::Error where no plan can be made.
StagePtr gate_product(const Block& block);                // gate = x . w_gate^T; both halves at once of a packed layout
StagePtr up_product(const Block& block);                  // up = x . w_up^T, of the separate layout
StagePtr half_product(const Block& block, bool up_half);  // gate or up, [T, F], of any layout with strided halves
StagePtr act_and_mul(const Block& block);
StagePtr gemm_gated(const Block& block);
StagePtr gate_up(const Block& block);
StagePtr down_product(const Block& block);
StagePtr mlp(const Block& block);

// gate_up of the block as gatefold.h describes it, and its tensors: for other builds of the library too.
Desc gate_up_desc(const Block& block);
Args gate_up_args(const Block& block, const Tensors& tensors);

// Who computes the plain products of a way: the library, or what it is compared with.
struct ProductStages {
  StagePtr (*gate)(const Block& block);
  StagePtr (*up)(const Block& block);
  StagePtr (*half)(const Block& block, bool up_half);
  StagePtr (*down)(const Block& block);
};
const ProductStages& library_products();

// Plain passes.
StagePtr activation_pass(const Block& block);
StagePtr multiply_pass(const Block& block);
StagePtr copy_pass(const Block& block);  // moves the bytes that act_and_mul moves: 3 T F elements, read and written

}  // namespace gatefold::cli
