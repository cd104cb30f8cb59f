#include "cli/stage.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "cli/instruction_set.hpp"

namespace gatefold::cli {
namespace {

const std::byte* advance(const void* data, std::int64_t elements, gatefold_dtype dtype) {
  return data == nullptr ? nullptr : static_cast<const std::byte*>(data) + elements * size_of(dtype);
}

// An op whose rows of `x`, `out` and, where they are activations, `gate` and `up` are tokens.
class OpStage final : public Stage {
 public:
  using Bind = std::function<Args(const Tensors&)>;

  OpStage(Desc desc, std::int64_t tokens, Bind bind, const Work& work)
      : desc_(std::move(desc)), tokens_(tokens), bind_(std::move(bind)), work_(work), plan_(desc_) {}

  std::string implementation() const override { return plan_.implementation(tokens_); }
  Work work() const override { return work_; }
  std::size_t workspace_size() const override { return plan_.workspace_size(tokens_); }
  std::string instruction_set() const override { return instruction_set_of(desc_, plan_, tokens_); }

  void enqueue(const Tensors& tensors, Backend& backend) const override {
    Args args = bind_(tensors);
    args.tokens = tokens_;
    args.workspace = tensors.workspace;
    args.stream = backend.stream();
    plan_.run(args);
  }

  std::optional<gatefold_error_report> check(const Tensors& host, const RowSample& rows,
                                             gatefold_data data) const override {
    Desc desc = desc_;
    Args args = bind_(host);
    args.tokens = rows.count;
    const auto sample = [&](const void*& tensor, std::int64_t& ld) {
      tensor = advance(tensor, rows.first * ld, desc.dtype);
      ld *= rows.stride;
    };
    sample(args.x, desc.ld.x);
    if (desc.op == GATEFOLD_OP_ACT_AND_MUL || desc.op == GATEFOLD_OP_GEMM_GATED) sample(args.gate, desc.ld.gate);
    if (desc.op == GATEFOLD_OP_ACT_AND_MUL) sample(args.up, desc.ld.up);
    const void* out = args.out;
    sample(out, desc.ld.out);
    args.out = const_cast<void*>(out);
    return gatefold::check(desc, args, data);
  }

 private:
  Desc desc_;
  std::int64_t tokens_;
  Bind bind_;
  Work work_;
  Plan plan_;
};

class PassStage final : public Stage {
 public:
  using Function = std::function<void(const Tensors&, Backend&)>;

  PassStage(std::string name, const Work& work, Function function)
      : name_(std::move(name)), work_(work), function_(std::move(function)) {}

  std::string implementation() const override { return name_; }
  Work work() const override { return work_; }
  void enqueue(const Tensors& tensors, Backend& backend) const override { function_(tensors, backend); }

 private:
  std::string name_;
  Work work_;
  Function function_;
};

Desc describe(const Block& block, gatefold_op op) {
  Desc desc{.op = op, .dtype = block.dtype, .device = block.device};
  if (op != GATEFOLD_OP_GEMM) desc.activation = block.activation;
  if (op != GATEFOLD_OP_GEMM && op != GATEFOLD_OP_GEMM_GATED) desc.layout = block.layout;
  desc.hidden_size = op == GATEFOLD_OP_ACT_AND_MUL ? 0 : block.hidden_size;
  desc.intermediate_size = block.intermediate_size;
  desc.implementation = implementation_for(op, block.device, block.implementation);
  desc.batch_invariant = block.batch_invariant;
  return desc;
}

StagePtr make_op(Desc desc, const Block& block, const Work& work, OpStage::Bind bind) {
  return std::make_shared<OpStage>(std::move(desc), block.tokens, std::move(bind), work);
}

// `tensors` times T x F elements, read or written; no operations worth counting
Work elementwise_work(const Block& block, int tensors, Leaves leaves) {
  const auto h = static_cast<std::int64_t>(block.h_bytes());
  return {{0.0, static_cast<double>(tensors * h)}, leaves, h};
}

Work half_product_work(const Block& block) {
  return product_work(block, block.intermediate_size, block.hidden_size, Leaves::between);
}

Work gemm_gated_work(const Block& block) {
  Work work = product_work(block, block.intermediate_size, block.hidden_size, Leaves::h);
  work.cost.bytes += static_cast<double>(block.h_bytes());  // reads gate
  return work;
}

Work mlp_work(const Block& block) {
  const Work first = gate_up_work(block);
  Work work = product_work(block, block.hidden_size, block.intermediate_size, Leaves::y);
  work.cost += first.cost;
  work.bytes_inside = first.bytes_left;
  if (block.chunk_tokens > 0 && block.chunk_tokens < block.tokens) {
    work.bytes_inside = work.bytes_inside / block.tokens * block.chunk_tokens;
  }
  return work;
}

// out [T, columns] = x . w^T
Desc describe_product(const Block& block, std::int64_t columns, std::int64_t ld_w) {
  Desc desc = describe(block, GATEFOLD_OP_GEMM);
  desc.intermediate_size = columns;
  desc.ld = {.x = block.hidden_size, .up = ld_w, .out = columns};
  return desc;
}

ElementwisePass pass_over(const Block& block, const Tensors& t) {
  return {.dtype = block.dtype,
          .layout = block.layout,
          .activation = block.activation,
          .tokens = block.tokens,
          .intermediate_size = block.intermediate_size,
          .gate = t.gate,
          .up = t.up,
          .activated = t.activated,
          .h = t.h};
}

}  // namespace

Work product_work(const Block& block, std::int64_t columns, std::int64_t length, Leaves leaves) {
  const auto T = static_cast<double>(block.tokens);
  const auto N = static_cast<double>(columns);
  const auto K = static_cast<double>(length);
  const Cost cost{2.0 * T * N * K, (T * K + N * K + T * N) * static_cast<double>(block.element())};
  return {cost, leaves, static_cast<std::int64_t>(block.bytes(block.tokens, columns))};
}

Work gate_up_work(const Block& block) {
  Work work = product_work(block, 2 * block.intermediate_size, block.hidden_size, Leaves::h);
  work.bytes_left /= 2;  // one half is all that is written
  work.cost.bytes -= static_cast<double>(work.bytes_left);
  return work;
}

RowSample sample_rows(std::int64_t rows, std::int64_t limit) {
  if (rows <= limit) return {0, 1, rows};
  const std::int64_t stride = (rows + limit - 1) / limit;
  const std::int64_t first = (rows - 1) % stride;
  return {first, stride, (rows - first + stride - 1) / stride};
}

StagePtr gate_product(const Block& block) {
  const std::int64_t columns = block.layout.packed() ? 2 * block.intermediate_size : block.intermediate_size;
  Desc desc = describe_product(block, columns, block.hidden_size);
  desc.biases.up = block.biases.gate;  // of a packed layout both halves', as its weight is
  return make_op(desc, block, product_work(block, columns, block.hidden_size, Leaves::between),
                 [](const Tensors& t) { return Args{.x = t.x, .up = t.w_gate, .out = t.gate, .up_bias = t.b_gate}; });
}

StagePtr up_product(const Block& block) {
  Desc desc = describe_product(block, block.intermediate_size, block.hidden_size);
  desc.biases.up = block.biases.up;
  return make_op(desc, block, half_product_work(block),
                 [](const Tensors& t) { return Args{.x = t.x, .up = t.w_up, .out = t.up, .up_bias = t.b_up}; });
}

StagePtr half_product(const Block& block, bool up_half) {
  Desc desc = describe_product(block, block.intermediate_size, half_rows(block, up_half).ld);
  desc.biases.up = has_half_bias(block, up_half);
  return make_op(desc, block, half_product_work(block), [block, up_half](const Tensors& t) {
    return Args{.x = t.x,
                .up = half_weights(block, t, up_half),
                .out = up_half ? t.up : t.gate,
                .up_bias = half_bias(block, t, up_half)};
  });
}

StagePtr act_and_mul(const Block& block) {
  const std::int64_t F = block.intermediate_size;
  const bool packed = block.layout.packed();
  Desc desc = describe(block, GATEFOLD_OP_ACT_AND_MUL);
  desc.ld = {.gate = packed ? 2 * F : F, .up = packed ? 0 : F, .out = F};
  return make_op(desc, block, elementwise_work(block, 3, Leaves::h), [packed](const Tensors& t) {
    return Args{.gate = t.gate, .up = packed ? nullptr : t.up, .out = t.h};
  });
}

StagePtr gemm_gated(const Block& block) {
  const std::int64_t F = block.intermediate_size;
  Desc desc = describe(block, GATEFOLD_OP_GEMM_GATED);
  desc.ld = {.x = block.hidden_size, .gate = F, .up = half_rows(block, true).ld, .out = F};
  desc.biases.up = has_half_bias(block, true);
  return make_op(desc, block, gemm_gated_work(block), [block](const Tensors& t) {
    return Args{
        .x = t.x, .gate = t.gate, .up = half_weights(block, t, true), .out = t.h, .up_bias = half_bias(block, t, true)};
  });
}

Desc gate_up_desc(const Block& block) {
  Desc desc = describe(block, GATEFOLD_OP_GATE_UP);
  desc.ld = {.x = block.hidden_size,
             .gate = block.hidden_size,
             .up = block.layout.packed() ? 0 : block.hidden_size,
             .out = block.intermediate_size};
  desc.biases = {.gate = block.biases.gate, .up = block.biases.up};
  return desc;
}

Args gate_up_args(const Block& block, const Tensors& t) {
  return {.x = t.x,
          .gate = t.w_gate,
          .up = block.layout.packed() ? nullptr : t.w_up,
          .out = t.h,
          .gate_bias = t.b_gate,
          .up_bias = t.b_up};
}

StagePtr gate_up(const Block& block) {
  return make_op(gate_up_desc(block), block, gate_up_work(block),
                 [block](const Tensors& t) { return gate_up_args(block, t); });
}

StagePtr down_product(const Block& block) {
  Desc desc = describe(block, GATEFOLD_OP_GEMM);
  std::swap(desc.hidden_size, desc.intermediate_size);  // F is summed over
  desc.ld = {.x = block.intermediate_size, .up = block.intermediate_size, .out = block.hidden_size};
  desc.biases.up = block.biases.down;
  return make_op(desc, block, product_work(block, block.hidden_size, block.intermediate_size, Leaves::y),
                 [](const Tensors& t) { return Args{.x = t.h, .up = t.w_down, .out = t.y, .up_bias = t.b_down}; });
}

StagePtr mlp(const Block& block) {
  const bool packed = block.layout.packed();
  Desc desc = describe(block, GATEFOLD_OP_MLP);
  desc.ld = {.x = block.hidden_size,
             .gate = block.hidden_size,
             .up = packed ? 0 : block.hidden_size,
             .down = block.intermediate_size,
             .out = block.hidden_size};
  desc.biases = block.biases;
  desc.chunk_tokens = block.chunk_tokens;
  return make_op(desc, block, mlp_work(block), [packed](const Tensors& t) {
    return Args{.x = t.x,
                .gate = t.w_gate,
                .up = packed ? nullptr : t.w_up,
                .down = t.w_down,
                .out = t.y,
                .gate_bias = t.b_gate,
                .up_bias = t.b_up,
                .down_bias = t.b_down};
  });
}

const ProductStages& library_products() {
  static const ProductStages stages{gate_product, up_product, half_product, down_product};
  return stages;
}

StagePtr activation_pass(const Block& block) {
  return std::make_shared<PassStage>(
      "activation pass", elementwise_work(block, 2, Leaves::between),
      [block](const Tensors& t, Backend& backend) { backend.activation_pass(pass_over(block, t)); });
}

StagePtr multiply_pass(const Block& block) {
  return std::make_shared<PassStage>(
      "multiply pass", elementwise_work(block, 3, Leaves::h),
      [block](const Tensors& t, Backend& backend) { backend.multiply_pass(pass_over(block, t)); });
}

StagePtr copy_pass(const Block& block) {
  return std::make_shared<PassStage>(
      "copy", elementwise_work(block, 3, Leaves::h),
      [block](const Tensors& t, Backend& backend) { backend.copy(t.activated, t.gate, block.h_bytes() * 3 / 2); });
}

}  // namespace gatefold::cli
