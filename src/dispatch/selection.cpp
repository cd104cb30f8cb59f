#include "dispatch/selection.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>

#include "dispatch/registry.hpp"

namespace gatefold {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> names(std::span<const Implementation* const> list) {
  std::vector<std::string> result;
  for (const Implementation* implementation : list) result.emplace_back(implementation->name());
  return result;
}

// "implementation" or "implementation:kernel".
struct Forced {
  std::string_view implementation;
  std::optional<std::string_view> kernel;

  explicit Forced(std::string_view text) : implementation(text.substr(0, text.find(':'))) {
    if (implementation.size() < text.size()) kernel = text.substr(implementation.size() + 1);
  }
};

bool is_implementation(Op op, Device device, std::string_view name) {
  const auto list = implementations(op, device);
  return std::any_of(list.begin(), list.end(), [&](const Implementation* i) { return i->name() == name; });
}

constexpr std::array every_op{Op::act_and_mul, Op::gemm, Op::gemm_gated, Op::gate_up, Op::mlp};

// Of some ops on every device, each once.
std::vector<std::string> names_of(std::span<const Op> ops) {
  std::vector<std::string> result;
  for (const Device device : {Device::cpu, Device::cuda}) {
    for (const Op op : ops) {
      for (std::string& name : names(implementations(op, device))) {
        if (std::ranges::find(result, name) == result.end()) result.push_back(std::move(name));
      }
    }
  }
  return result;
}

// What GATEFOLD_IMPL holds between commas: "NAME", or "OP=NAME" of one op alone.
struct Entry {
  std::optional<std::string_view> op;
  std::string_view name;

  explicit Entry(std::string_view text) : name(text.substr(text.find('=') + 1)) {
    if (name.size() < text.size()) op = text.substr(0, text.size() - name.size() - 1);
  }

  bool is_of(Op other) const { return !op || *op == to_string(other); }
};

// Fails if the entry's op is none, or none of the ops that it is of has the name.
Status check_entry(const Entry& entry) {
  std::vector<Op> ops;
  std::ranges::copy_if(every_op, std::back_inserter(ops), [&](Op op) { return entry.is_of(op); });
  if (ops.empty()) {
    std::vector<std::string> known(every_op.size());
    std::ranges::transform(every_op, known.begin(), [](Op op) { return to_string(op); });
    return invalid("GATEFOLD_IMPL: \"", *entry.op, "\" is no op, but one of ", joined(known));
  }
  const std::string_view implementation = Forced(entry.name).implementation;
  const std::vector<std::string> known = names_of(ops);
  if (entry.name.empty() || std::ranges::find(known, implementation) != known.end()) return {};
  return invalid("GATEFOLD_IMPL: \"", implementation, "\" is no implementation",
                 entry.op ? concat(" of ", *entry.op) : "", " in this build, which has ", joined(known));
}

Status check_kernel(const Implementation& implementation, const Problem& problem, std::string_view kernel) {
  const std::vector<std::string> kernels = implementation.kernels(problem);
  if (std::ranges::find(kernels, kernel) != kernels.end()) return {};
  return unsupported("implementation: ", implementation.name(), " has no kernel \"", kernel, "\" for this ",
                     to_string(problem.op), ", but ", kernels.empty() ? "one without a name" : joined(kernels));
}

// The implementation's own verdict; where a row must have the same bits in any batch, one implementation takes all
// numbers of tokens.
Verdict verdict_on(const Implementation& implementation, const Problem& problem) {
  Verdict verdict = implementation.supports(problem);
  if (!problem.batch_invariant || !verdict.eligible) return verdict;
  if (!implementation.batch_invariant()) {
    return {false, "not batch-invariant: a row's bits depend on the number of tokens"};
  }
  if (verdict.by_name_alone()) return verdict;
  verdict.min_tokens = 0;
  verdict.max_tokens = std::numeric_limits<std::int64_t>::max();
  return verdict;
}

}  // namespace

Status forced_by_environment(Op op, Device device, std::string& forced) {
  forced.clear();
  const char* value = std::getenv("GATEFOLD_IMPL");  // NOLINT(concurrency-mt-unsafe): nobody here calls setenv
  if (value == nullptr) return {};
  std::istringstream wanted(value);
  for (std::string text; std::getline(wanted, text, ',');) {
    const Entry entry(text);
    if (Status status = check_entry(entry); !status.ok()) return status;
    const bool applies = entry.is_of(op) && is_implementation(op, device, Forced(entry.name).implementation);
    if (forced.empty() && applies) forced = entry.name;
  }
  return {};
}

Status Selection::make(const Problem& problem, std::string_view forced_text, Selection& selection) {
  const auto [forced, kernel] = Forced(forced_text);
  const auto list = implementations(problem.op, problem.device);
  if (list.empty()) {
    return unsupported("device: ", to_string(problem.device), " has no implementation of ", to_string(problem.op),
                       " in this build");
  }
  if (!forced.empty() && !is_implementation(problem.op, problem.device, forced)) {
    return invalid("implementation: \"", forced, "\" is not one of ", to_string(problem.op), "'s on ",
                   to_string(problem.device), ": ", joined(names(list)));
  }

  Selection made;
  bool reachable = true;  // could some run still fall through to the next candidate?
  for (const Implementation* implementation : list) {
    Candidate candidate{implementation, verdict_on(*implementation, problem), nullptr};
    const bool is_forced = implementation->name() == forced;
    if (is_forced && !candidate.verdict.eligible) {
      return unsupported("implementation: ", forced, " cannot take this ", to_string(problem.op), ": ",
                         candidate.verdict.reason);
    }
    if (is_forced && kernel) {
      if (Status status = check_kernel(*implementation, problem, *kernel); !status.ok()) return status;
    }
    if (is_forced) made.forced_ = made.candidates_.size();
    if (forced.empty() ? reachable && candidate.verdict.eligible : is_forced) {
      candidate.executor = kernel ? implementation->prepare_kernel(problem, *kernel) : implementation->prepare(problem);
      reachable = reachable && !(candidate.verdict.wants_all() && candidate.verdict.every_pointer);
    }
    made.candidates_.push_back(std::move(candidate));
  }
  // The last candidate takes every problem, so its reason is the machine: no driver, no device.
  if (const Candidate& last = made.candidates_.back(); forced.empty() && !last.verdict.eligible && reachable) {
    return unsupported("device: no implementation of ", to_string(problem.op), " can run on ",
                       to_string(problem.device), " here: ", last.verdict.reason);
  }
  selection = std::move(made);
  return {};
}

const Candidate& Selection::choose(std::int64_t tokens) const {
  if (forced()) return candidates_[forced_];
  const auto chosen =
      std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.verdict.wants(tokens); });
  return chosen != candidates_.end() ? *chosen : candidates_.back();
}

const Candidate* Selection::taken_by(const Operands& operands) const {
  for (const Candidate& candidate : candidates_) {
    if (!candidate.executor || !(forced() || candidate.verdict.wants(operands.tokens))) continue;
    if (candidate.executor->accepts(operands)) return &candidate;
  }
  return nullptr;
}

Status Selection::run(const Operands& operands) const {
  if (const Candidate* candidate = taken_by(operands)) return candidate->executor->run(operands);
  if (!forced()) return {GATEFOLD_ERROR_INTERNAL, "no candidate takes this run"};
  return unsupported("implementation: ", candidates_[forced_].implementation->name(),
                     " was forced, but cannot take pointers of this alignment");
}

bool Selection::holds_back_the_next(const Operands& operands) const {
  const Candidate* candidate = taken_by(operands);
  return candidate != nullptr && candidate->executor->holds_back_the_next(operands);
}

std::size_t Selection::workspace_size(std::int64_t max_tokens) const {
  std::size_t bytes = 0;
  for (const Candidate& candidate : candidates_) {
    if (!candidate.executor) continue;
    const std::int64_t most = forced() ? max_tokens : std::min(max_tokens, candidate.verdict.max_tokens);
    bytes = std::max(bytes, candidate.executor->workspace_size(most));
  }
  return bytes;
}

std::vector<std::string> Selection::kernels(const Problem& problem, std::string_view name) const {
  const auto named = std::ranges::find(candidates_, name, [](const Candidate& c) { return c.implementation->name(); });
  if (named == candidates_.end() || !named->verdict.eligible) return {};
  return named->implementation->kernels(problem);
}

std::string Selection::reason(std::size_t index, std::int64_t tokens) const {
  const Candidate& candidate = candidates_[index];
  const Candidate& chosen = choose(tokens);
  if (!candidate.verdict.eligible) return candidate.verdict.reason;
  if (&candidate == &chosen) {
    const std::string details = candidate.executor->describe(tokens);
    return (forced() ? "forced by name" : candidate.verdict.reason) + (details.empty() ? "" : "; " + details);
  }
  if (forced()) return concat("passed over: ", chosen.implementation->name(), " was forced by name");
  if (candidate.verdict.wants(tokens)) return concat("passed over: ", chosen.implementation->name(), " comes first");
  if (candidate.verdict.by_name_alone()) {
    return concat("passed over: taken by name alone; ", candidate.verdict.reason);
  }
  const bool limited = candidate.verdict.max_tokens < std::numeric_limits<std::int64_t>::max();
  return concat("passed over: meant for ", candidate.verdict.min_tokens,
                limited ? concat(" to ", candidate.verdict.max_tokens) : " or more", " tokens, not ", tokens);
}

}  // namespace gatefold
