#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.hpp"
#include "swap_ffn/config.hpp"

namespace gatefold::swap_ffn {

// Validated pointers of one step: gatefold_swap_ffn_args, in bytes.
struct StepOperands {
  std::int64_t batch = 0;
  const std::byte* prepared = nullptr;
  const std::byte* x = nullptr;
  std::byte* ram = nullptr;
  std::uint8_t* stream_map = nullptr;
  std::byte* delta = nullptr;
  std::byte* workspace = nullptr;
  std::size_t workspace_size = 0;
  void* stream = nullptr;
  std::byte* states = nullptr;  // this and what follows may be null
  std::uint8_t* decisions = nullptr;
  double* pass_seconds = nullptr;
};

// A configuration on a device. Immutable: any number of threads may call it at a time.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  virtual std::size_t prepared_size() const = 0;
  virtual Status prepare(const Weights& weights, std::byte* prepared, void* stream) const = 0;
  virtual std::size_t workspace_size(std::int64_t max_batch) const = 0;
  virtual std::vector<gatefold_swap_ffn_pass_info> passes(std::int64_t batch) const = 0;

  // batch > 0. Allocates nothing, throws nothing; but on CUDA where pass_seconds are wanted.
  virtual Status step(const StepOperands& operands) const = 0;
};

// Each throws StatusError where a product has no implementation.
std::unique_ptr<Executor> make_cpu_executor(const Config& config);
std::unique_ptr<Executor> make_cuda_executor(const Config& config);  // in builds with CUDA

}  // namespace gatefold::swap_ffn
