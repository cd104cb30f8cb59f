#include "dispatch/steps.hpp"

#include <algorithm>
#include <utility>

#include "core/arithmetic.hpp"
#include "dispatch/selection.hpp"

namespace gatefold {
namespace {

constexpr std::size_t buffer_alignment = 256;

std::size_t buffer_size(std::size_t row_bytes, std::int64_t tokens) {
  return ceil_div(static_cast<std::size_t>(tokens) * row_bytes, buffer_alignment) * buffer_alignment;
}

class SelectedOp final : public Executor {
 public:
  SelectedOp(Op op, Selection selection) : op_(op), selection_(std::move(selection)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override { return selection_.workspace_size(max_tokens); }
  std::string describe(std::int64_t tokens) const override {
    return concat(to_string(op_), " by ", selection_.choose(tokens).implementation->name());
  }
  Status run(const Operands& operands) const override { return selection_.run(operands); }
  bool holds_back_the_next(const Operands& operands) const override { return selection_.holds_back_the_next(operands); }

 private:
  Op op_;
  Selection selection_;
};

}  // namespace

Arena::Arena(std::vector<std::size_t> row_bytes) : row_bytes_(std::move(row_bytes)) {
  if (row_bytes_.size() > most_buffers) {
    throw StatusError({GATEFOLD_ERROR_INTERNAL, concat(row_bytes_.size(), " buffers, an arena has ", most_buffers)});
  }
}

std::size_t Arena::size(std::int64_t tokens) const {
  std::size_t bytes = 0;
  for (const std::size_t row_bytes : row_bytes_) bytes += buffer_size(row_bytes, tokens);
  return bytes;
}

Buffers Arena::buffers(std::byte* workspace, std::int64_t tokens) const {
  Buffers buffers{};
  for (std::size_t i = 0; i < row_bytes_.size(); ++i) {
    buffers[i] = workspace;
    workspace += buffer_size(row_bytes_[i], tokens);
  }
  return buffers;
}

std::size_t Steps::workspace_size(std::int64_t max_tokens) const {
  std::size_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.executor->workspace_size(max_tokens));
  return arena_.size(max_tokens) + most;
}

std::string Steps::describe(std::int64_t tokens) const {
  std::string text;
  for (const Step& step : steps_) text += (text.empty() ? "" : ", ") + step.executor->describe(tokens);
  return text;
}

Status Steps::run(const Operands& whole) const {
  const std::size_t kept = arena_.size(whole.tokens);
  const Buffers buffers = arena_.buffers(whole.workspace, whole.tokens);
  bool settled = false;
  for (const Step& step : steps_) {
    if (step.writes_nothing) continue;
    Operands operands = step.operands(whole, buffers);
    operands.workspace = whole.workspace + kept;
    operands.workspace_size = whole.workspace_size - kept;
    operands.device = whole.device;
    operands.weights_settled = settled;
    if (Status status = step.executor->run(operands); !status.ok()) return status;
    settled = step.executor->holds_back_the_next(operands);
  }
  return {};
}

std::unique_ptr<Executor> op_step(const Problem& problem) {
  std::string forced;
  Selection selection;
  throw_if_failed(forced_by_environment(problem.op, problem.device, forced));
  throw_if_failed(Selection::make(problem, forced, selection));
  return std::make_unique<SelectedOp>(problem.op, std::move(selection));
}

std::unique_ptr<Executor> kernel_step(const Problem& problem, std::string_view kernel) {
  std::string forced;
  Selection selection;
  throw_if_failed(forced_by_environment(problem.op, problem.device, forced));
  if (!forced.empty() || !Selection::make(problem, kernel, selection).ok()) return nullptr;
  return std::make_unique<SelectedOp>(problem.op, std::move(selection));
}

}  // namespace gatefold
