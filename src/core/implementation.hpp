#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "core/status.hpp"

namespace gatefold {

// Whether an implementation can take a problem, for which numbers of tokens it is the one to take, and the line that
// says why or why not.
struct Verdict {
  bool eligible = false;
  std::string reason;
  std::int64_t min_tokens = 0;  // above max_tokens: it is taken by name alone
  std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max();
  bool every_pointer = true;  // false: its executor may refuse pointers by their alignment (Executor::accepts)

  bool by_name_alone() const { return max_tokens < min_tokens; }
  bool wants(std::int64_t tokens) const { return eligible && min_tokens <= tokens && tokens <= max_tokens; }
  bool wants_all() const { return wants(0) && wants(std::numeric_limits<std::int64_t>::max()); }
};

// A prepared implementation of one problem. Immutable: any number of threads may call it at a time.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // The most bytes that a run of 0 ... max_tokens tokens needs.
  virtual std::size_t workspace_size(std::int64_t max_tokens) const = 0;

  // How a run of this many tokens is configured (tiles, parts), in a few words; "" if there is nothing to say.
  virtual std::string describe(std::int64_t /*tokens*/) const { return {}; }

  // Can it take these pointers? Alignment is known only here; a run that is refused goes to the next of the list.
  virtual bool accepts(const Operands& /*operands*/) const { return true; }

  // CUDA: do such a run's kernels let the next one in the stream begin only when every kernel before the run has ended?
  // What those have written may be read there at once, without waiting for this run's kernels.
  virtual bool holds_back_the_next(const Operands& /*operands*/) const { return false; }

  // The output is not empty; D >= 0. Allocates nothing, throws nothing.
  virtual Status run(const Operands& operands) const = 0;
};

// One way to compute one op on one kind of device. Stateless: the instances live in static storage, in the lists of
// src/dispatch.
class Implementation {
 public:
  Implementation() = default;
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;
  virtual ~Implementation() = default;

  virtual std::string_view name() const = 0;

  // An eligible implementation can compute the problem with any number of tokens. It is chosen for those in its range
  // that nothing before it in the list wants; forced, it takes them all.
  virtual Verdict supports(const Problem& problem) const = 0;

  // Has a row of the output the same bits for every number of tokens and whatever the other rows are?
  virtual bool batch_invariant() const { return false; }

  // May throw std::exception: plan creation turns it into a status.
  virtual std::unique_ptr<Executor> prepare(const Problem& problem) const = 0;

  // The kernels that can take the problem, by name, where each run chooses among several: one can be forced.
  virtual std::vector<std::string> kernels(const Problem& /*problem*/) const { return {}; }

  // As prepare, with that choice made: `kernel` is one of kernels().
  virtual std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view /*kernel*/) const {
    return prepare(problem);
  }
};

}  // namespace gatefold
