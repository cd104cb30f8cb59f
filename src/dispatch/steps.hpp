#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/implementation.hpp"

// An op that is computed as others, one after the other.
namespace gatefold {

constexpr std::size_t most_buffers = 4;
// Where one run's buffers lie.
using Buffers = std::array<std::byte*, most_buffers>;

// The workspace of such an op: its buffers [tokens, row_bytes], one behind the other, each aligned; behind them the
// workspace of whichever step is at work.
class Arena {
 public:
  explicit Arena(std::vector<std::size_t> row_bytes);  // of each buffer; at most most_buffers

  // Bytes of all buffers: where the steps' own workspace begins.
  std::size_t size(std::int64_t tokens) const;
  Buffers buffers(std::byte* workspace, std::int64_t tokens) const;

 private:
  std::vector<std::size_t> row_bytes_;
};

struct Step {
  std::unique_ptr<Executor> executor;

  // The step's tensors, from those of the whole op and the buffers between the steps: its weights are the whole op's,
  // never what another step writes. The rest is not their business: its workspace, the device, settled weights.
  Operands (*operands)(const Operands& whole, const Buffers& buffers);

  bool writes_nothing = false;  // its output has no columns: it is left out
};

class Steps final : public Executor {
 public:
  Steps(Arena arena, std::vector<Step> steps) : arena_(std::move(arena)), steps_(std::move(steps)) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override;
  std::string describe(std::int64_t tokens) const override;  // the steps' own descriptions, in order
  Status run(const Operands& operands) const override;

 private:
  Arena arena_;
  std::vector<Step> steps_;
};

// An op as a step: by whichever implementation its list and GATEFOLD_IMPL choose. It describes itself as "gemm by
// sm90". Throws StatusError where none can take it.
std::unique_ptr<Executor> op_step(const Problem& problem);

// The same by one kernel, "sm90:128x64 cluster 1x1 split-K 2"; null where it can't take the problem here, or
// GATEFOLD_IMPL forces another.
std::unique_ptr<Executor> kernel_step(const Problem& problem, std::string_view kernel);

}  // namespace gatefold
