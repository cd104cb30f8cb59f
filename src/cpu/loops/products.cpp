#include <algorithm>
#include <string>

#include "cpu/implementations.hpp"
#include "cpu/loops/executor.hpp"

namespace gatefold::cpu {
namespace {

constexpr std::int64_t most_columns = std::int64_t{1} << 44;  // of D and of F: more than any machine holds

// By one kernel for few tokens, by another for more.
class ByTokens final : public Executor {
 public:
  ByTokens(const Problem& problem, const Kernel& few, const Kernel& many)
      : few_(make_executor(problem, few)), many_(make_executor(problem, many)), most_few_(many.few_tokens) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    const std::size_t of_few = few_->workspace_size(std::min(max_tokens, most_few_));
    return max_tokens <= most_few_ ? of_few : std::max(of_few, many_->workspace_size(max_tokens));
  }

  std::string describe(std::int64_t tokens) const override { return by(tokens).describe(tokens); }

  Status run(const Operands& operands) const override { return by(operands.tokens).run(operands); }

 private:
  const Executor& by(std::int64_t tokens) const { return tokens <= most_few_ ? *few_ : *many_; }

  std::unique_ptr<Executor> few_;
  std::unique_ptr<Executor> many_;
  std::int64_t most_few_;
};

class Loops final : public Implementation {
 public:
  std::string_view name() const override { return "loops"; }
  bool batch_invariant() const override { return true; }  // by one kernel for all, where a problem wants it

  Verdict supports(const Problem& problem) const override {
    if (problem.hidden_size == 0) return {false, "needs D > 0"};  // rows of nothing may be null
    if (std::max(problem.hidden_size, problem.intermediate_size) > most_columns) return {false, "D or F exceeds 2^44"};
    Verdict verdict{true, problem.op == Op::gemm ? "weights straight from memory, panel by panel"
                                                 : "weights straight from memory; activation and product while a "
                                                   "panel's sums are in the cache"};
    verdict.max_tokens = token_limit(problem);
    return verdict;
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    const auto& kernels = kernels_for(problem.types.x);
    if (kernels[0]->few_tokens == 0 || problem.batch_invariant) return make_executor(problem, *kernels[0]);
    return std::make_unique<ByTokens>(problem, *kernels[1], *kernels[0]);
  }

  std::vector<std::string> kernels(const Problem& problem) const override {
    std::vector<std::string> names;
    for (const Kernel* kernel : kernels_for(problem.types.x)) names.emplace_back(kernel->name);
    return names;
  }

  std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view wanted) const override {
    const auto& all = kernels_for(problem.types.x);
    const auto found =
        std::ranges::find(all, wanted, [](const Kernel* kernel) { return std::string_view(kernel->name); });
    return make_executor(problem, **found);
  }
};

const Loops implementation;

}  // namespace

const Implementation* loops() { return &implementation; }

}  // namespace gatefold::cpu
