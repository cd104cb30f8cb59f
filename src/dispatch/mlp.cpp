#include "dispatch/mlp.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "dispatch/registry.hpp"
#include "dispatch/selection.hpp"

namespace gatefold {
namespace {

constexpr std::size_t workspace_alignment = 256;

constexpr std::size_t align_up(std::size_t bytes) {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

Problem gate_up_of(const Problem& mlp) {
  Problem problem = mlp;
  problem.op = Op::gate_up;
  problem.ld_down = 0;
  problem.biases.down = false;
  problem.ld_out = mlp.intermediate_size;
  return problem;
}

// y = h . w_down^T: F is summed over, D is the output's width.
Problem down_of(const Problem& mlp) {
  Problem problem;
  problem.op = Op::gemm;
  problem.dtype = mlp.dtype;
  problem.device = mlp.device;
  problem.hidden_size = mlp.intermediate_size;
  problem.intermediate_size = mlp.hidden_size;
  problem.ld_x = mlp.intermediate_size;
  problem.ld_up = mlp.ld_down;
  problem.biases.up = mlp.biases.down;
  problem.ld_out = mlp.ld_out;
  return problem;
}

// The workspace holds h [tokens, F], then whatever the two products need, one after the other.
class ComposedMlp final : public Executor {
 public:
  ComposedMlp(const Problem& problem, Selection gate_up, Selection down)
      : row_bytes_(static_cast<std::size_t>(problem.intermediate_size * size_of(problem.dtype))),
        gate_up_(std::move(gate_up)),
        down_(std::move(down)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return h_bytes(max_tokens) + std::max(gate_up_.workspace_size(max_tokens), down_.workspace_size(max_tokens));
  }

  std::string describe(std::int64_t tokens) const override {
    return concat("gate_up by ", gate_up_.choose(tokens).implementation->name(), ", gemm by ",
                  down_.choose(tokens).implementation->name());
  }

  Status run(const Operands& operands) const override {
    const std::size_t h_size = h_bytes(operands.tokens);
    Operands first = operands;
    first.down = nullptr;
    first.down_bias = nullptr;
    first.out = operands.workspace;
    first.workspace = operands.workspace + h_size;
    first.workspace_size = operands.workspace_size - h_size;
    if (row_bytes_ > 0) {
      if (Status status = gate_up_.run(first); !status.ok()) return status;
    }

    Operands second = first;
    second.x = operands.workspace;
    second.gate = nullptr;
    second.up = operands.down;
    second.gate_bias = nullptr;
    second.up_bias = operands.down_bias;
    second.out = operands.out;
    return down_.run(second);
  }

 private:
  std::size_t h_bytes(std::int64_t tokens) const { return align_up(static_cast<std::size_t>(tokens) * row_bytes_); }

  std::size_t row_bytes_;
  Selection gate_up_;
  Selection down_;
};

class ComposedMlpImplementation final : public Implementation {
 public:
  std::string_view name() const override { return "composed"; }

  Verdict supports(const Problem& problem) const override {
    // The last of each list takes everything; if it cannot, nothing can on this machine.
    const auto gate_up = implementations(Op::gate_up, problem.device);
    if (const Verdict verdict = gate_up.back()->supports(gate_up_of(problem)); !verdict.eligible) return verdict;
    return {true, "gate_up, then gemm with w_down"};
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    Selection gate_up = select(gate_up_of(problem));  // first, so that it is the first to complain
    Selection down = select(down_of(problem));
    return std::make_unique<ComposedMlp>(problem, std::move(gate_up), std::move(down));
  }

 private:
  static Selection select(const Problem& product) {
    std::string forced;
    Selection selection;
    throw_if_failed(forced_by_environment(product.op, product.device, forced));
    throw_if_failed(Selection::make(product, forced, selection));
    return selection;
  }
};

}  // namespace

const Implementation* composed_mlp() {
  static const ComposedMlpImplementation implementation;
  return &implementation;
}

}  // namespace gatefold
