#include "cuda/common/executor.hpp"
#include "cuda/elementwise/act_and_mul_launch.cuh"
#include "cuda/implementations.hpp"

namespace gatefold::cuda {

// One unit per thread: two 16-byte loads each, with 2048 threads 64 KiB in flight on a multiprocessor. More units per
// thread were slower on an H200, and so were bulk copies (docs/kernels/elementwise.md).
struct ByVectors {
  static constexpr ActAndMulConfig value{.access = Access::vectors, .log2_threads = 8, .log2_units = 0};
};
struct ByVectorsOfAnyRun {
  static constexpr ActAndMulConfig value{
      .access = Access::vectors, .log2_threads = 8, .log2_units = 0, .runs = Runs::any};
};
struct Alternating {
  static constexpr ActAndMulConfig value{.access = Access::alternating, .log2_threads = 8, .log2_units = 0};
};

namespace {

constexpr std::int64_t access_bytes = 16;

std::int64_t vector_elements(const Problem& p) { return access_bytes / size_of(p.types.x); }

bool alternates(const Problem& p) { return p.layout.interleaved() && p.layout.block == 1; }

bool is_aligned(const std::byte* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % access_bytes == 0; }

class Executor final : public DeviceExecutor {
 public:
  using DeviceExecutor::DeviceExecutor;

  std::string describe(std::int64_t /*tokens*/) const override {
    return alternates(problem()) ? "halves separated in registers" : "";
  }
  bool accepts(const Operands& operands) const override {
    return is_aligned(operands.gate) && is_aligned(operands.up) && is_aligned(operands.out);
  }

 private:
  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    if (alternates(problem())) {
      return launch_act_and_mul<Alternating>(problem(), operands, device, stream);
    }
    if (has_odd_runs(problem())) {
      return launch_act_and_mul<ByVectorsOfAnyRun>(problem(), operands, device, stream);
    }
    return launch_act_and_mul<ByVectors>(problem(), operands, device, stream);
  }
};

// Why 16-byte accesses cannot take a problem; "" if they can.
std::string obstacle(const Problem& p) {
  const std::int64_t n = vector_elements(p);
  struct Size {
    const char* name;
    std::int64_t value;
  };
  for (const Size& size : {Size{"intermediate_size", p.intermediate_size}, Size{"ld_gate", p.ld_gate},
                           Size{"ld_up", p.layout.packed() ? 0 : p.ld_up}, Size{"ld_out", p.ld_out}}) {
    if (size.value % n != 0) {
      return concat(size.name, " ", size.value, " is not a multiple of ", n, " elements (16 bytes)");
    }
  }
  if (p.layout.interleaved() && p.layout.block != 1 && p.layout.block % n != 0) {
    return concat("block ", p.layout.block, " is neither 1 nor a multiple of ", n, " elements (16 bytes)");
  }
  return {};
}

class Vectorised final : public Implementation {
 public:
  std::string_view name() const override { return "vectors"; }
  bool batch_invariant() const override { return true; }
  Verdict supports(const Problem& problem) const override {
    Verdict verdict = require_capability(least_capability, no_upper_capability, "16-byte accesses");
    if (!verdict.eligible) return verdict;
    if (std::string reason = obstacle(problem); !reason.empty()) return {false, std::move(reason)};
    verdict.every_pointer = false;
    return verdict;
  }
  std::unique_ptr<gatefold::Executor> prepare(const Problem& problem) const override {
    return std::make_unique<Executor>(problem);
  }
};

const Vectorised instance;

}  // namespace

const Implementation* vector_act_and_mul() { return &instance; }

}  // namespace gatefold::cuda
