#include "dispatch/mlp.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/row_stride.hpp"
#if GATEFOLD_WITH_CUDA
#include "cuda/common/executor.hpp"
#endif
#include "dispatch/registry.hpp"
#include "dispatch/selection.hpp"
#include "dispatch/steps.hpp"

namespace gatefold {
namespace {

constexpr std::size_t h = 0;  // the one buffer between the steps, [tokens, F]

// Elements from one row of h to the next.
std::int64_t ld_h(const Problem& mlp) {
  if (mlp.device != Device::cpu) return mlp.intermediate_size;
  const std::int64_t element = size_of(mlp.types.out);
  const std::int64_t lines = ceil_div(mlp.intermediate_size * element, cache_line_bytes);
  return spread_stride(lines * cache_line_bytes) / element;
}

// Whether both steps go by the same list, so that what one leaves for the other is between them.
bool owns_h(const Problem& mlp) {
  if (mlp.device != Device::cpu) return false;
  std::string gate_up;
  std::string gemm;
  throw_if_failed(forced_by_environment(Op::gate_up, mlp.device, gate_up));
  throw_if_failed(forced_by_environment(Op::gemm, mlp.device, gemm));
  return gate_up == gemm;
}

Problem gate_up_of(const Problem& mlp) {
  Problem problem = mlp;
  problem.op = Op::gate_up;
  problem.ld_down = 0;
  problem.ld_out = ld_h(mlp);
  problem.own_h = owns_h(mlp);
  problem.has_spare = problem.own_h && mlp.ld_out == mlp.hidden_size;
  problem.biases.down = false;
  problem.chunk_tokens = 0;
  return problem;
}

Operands operands_of_gate_up(const Operands& whole, const Buffers& buffers) {
  Operands operands = whole;
  operands.down = nullptr;
  operands.down_bias = nullptr;
  operands.out = buffers[h];
  operands.spare = whole.out;
  return operands;
}

// y = h . w_down^T: F is summed over, D is the output's width.
Problem down_of(const Problem& mlp) {
  Problem problem;
  problem.op = Op::gemm;
  problem.types = {mlp.types.out, mlp.types.weights, mlp.types.out};
  problem.device = mlp.device;
  problem.hidden_size = mlp.intermediate_size;
  problem.intermediate_size = mlp.hidden_size;
  problem.ld_x = ld_h(mlp);
  problem.own_h = owns_h(mlp);
  problem.ld_up = mlp.ld_down;
  problem.ld_out = mlp.ld_out;
  problem.biases.up = mlp.biases.down;
  problem.batch_invariant = mlp.batch_invariant;
  return problem;
}

Operands operands_of_down(const Operands& whole, const Buffers& buffers) {
  Operands operands;
  operands.tokens = whole.tokens;
  operands.x = buffers[h];
  operands.up = whole.down;
  operands.up_bias = whole.down_bias;
  operands.out = whole.out;
  operands.stream = whole.stream;
  return operands;
}

// CUDA devices are looked for once, not for each step.
std::unique_ptr<Executor> on_one_device([[maybe_unused]] const Problem& problem, std::unique_ptr<Executor> steps) {
#if GATEFOLD_WITH_CUDA
  if (problem.device == Device::cuda) return cuda::on_one_device(problem, std::move(steps));
#endif
  return steps;
}

// So many tokens at a time: the workspace is that of one chunk, and the chunks follow one another in stream order.
class InChunks final : public Executor {
 public:
  InChunks(const Problem& problem, std::unique_ptr<Executor> whole)
      : tokens_(problem.chunk_tokens),
        ld_x_(problem.ld_x),
        ld_out_(problem.ld_out),
        types_(problem.types),
        whole_(std::move(whole)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return whole_->workspace_size(std::min(max_tokens, tokens_));
  }
  std::string describe(std::int64_t tokens) const override {
    const std::string one = whole_->describe(std::min(tokens, tokens_));
    return tokens <= tokens_ ? one : concat("chunks of ", tokens_, " tokens: ", one);
  }
  bool accepts(const Operands& operands) const override { return whole_->accepts(operands); }

  Status run(const Operands& whole) const override {
    for (std::int64_t first = 0; first < whole.tokens; first += tokens_) {
      Operands chunk = whole;
      chunk.tokens = std::min(tokens_, whole.tokens - first);
      // In this order: elements before token `first` were counted when the tensors were checked. A row alone may have a
      // leading dimension whose bytes overflow.
      chunk.x = whole.x + first * ld_x_ * size_of(types_.x);
      chunk.out = whole.out + first * ld_out_ * size_of(types_.out);
      if (Status status = whole_->run(chunk); !status.ok()) return status;
    }
    return {};
  }

 private:
  std::int64_t tokens_;
  std::int64_t ld_x_;
  std::int64_t ld_out_;
  ElementTypes types_;
  std::unique_ptr<Executor> whole_;
};

class ComposedMlp final : public Implementation {
 public:
  std::string_view name() const override { return "composed"; }
  bool batch_invariant() const override { return true; }  // each product is chosen so

  Verdict supports(const Problem& problem) const override {
    // The last of each list takes everything; if it cannot, nothing can on this machine.
    const auto gate_up = implementations(Op::gate_up, problem.device);
    if (const Verdict verdict = gate_up.back()->supports(gate_up_of(problem)); !verdict.eligible) return verdict;
    return {true, "gate_up, then gemm with w_down"};
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    const auto row_bytes = static_cast<std::size_t>(ld_h(problem) * size_of(problem.types.out));
    std::vector<Step> steps;
    steps.push_back({op_step(gate_up_of(problem)), operands_of_gate_up, problem.intermediate_size == 0});
    steps.push_back({op_step(down_of(problem)), operands_of_down});
    std::unique_ptr<Executor> whole = std::make_unique<Steps>(Arena({row_bytes}), std::move(steps));
    if (problem.chunk_tokens > 0) whole = std::make_unique<InChunks>(problem, std::move(whole));
    return on_one_device(problem, std::move(whole));
  }
};

}  // namespace

const Implementation* composed_mlp() {
  static const ComposedMlp implementation;
  return &implementation;
}

}  // namespace gatefold
