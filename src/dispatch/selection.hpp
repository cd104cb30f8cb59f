#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/implementation.hpp"

namespace gatefold {

// One entry of an op's list, held against a problem.
struct Candidate {
  const Implementation* implementation = nullptr;
  Verdict verdict;
  std::unique_ptr<Executor> executor;  // null where no number of tokens could lead here
};

// The candidates of a problem in list order, and which of them each number of tokens takes.
class Selection {
 public:
  // forced: an implementation's name, or that and one of its kernels', "sm90:256x192 cluster 1x2", or empty. Fails if
  // the forced one is unknown or cannot take the problem. May throw what Implementation::prepare throws.
  static Status make(const Problem& problem, std::string_view forced, Selection& selection);

  // The candidate that a run of this many tokens takes, if its pointers are aligned as that candidate wants.
  const Candidate& choose(std::int64_t tokens) const;

  // Runs the first candidate that wants the tokens and accepts the pointers.
  Status run(const Operands& operands) const;
  // Of that candidate's executor.
  bool holds_back_the_next(const Operands& operands) const;

  std::size_t workspace_size(std::int64_t max_tokens) const;
  bool forced() const { return forced_ != none; }

  const std::vector<Candidate>& candidates() const { return candidates_; }

  // The kernels of the candidate of this name that can take the problem; none if there is no such candidate.
  std::vector<std::string> kernels(const Problem& problem, std::string_view name) const;

  // Why candidate `index` is or is not the choice for `tokens`.
  std::string reason(std::size_t index, std::int64_t tokens) const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // The candidate that takes a run; null where the forced one does not accept its pointers.
  const Candidate* taken_by(const Operands& operands) const;

  std::vector<Candidate> candidates_;
  std::size_t forced_ = none;
};

// What GATEFOLD_IMPL forces for an op on a device: the first of its comma-separated names (a kernel's may follow; an op
// may stand before, "gate_up=sm90") whose implementation is in their list, or "". Fails if no op of this build, or not
// the one before it, has one of the names: it is misspelt.
Status forced_by_environment(Op op, Device device, std::string& forced);

}  // namespace gatefold
