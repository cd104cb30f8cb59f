#include "cuda/common/executor.hpp"
#include "cuda/elementwise/act_and_mul_launch.cuh"
#include "cuda/implementations.hpp"

namespace gatefold::cuda {

struct ByElements {
  static constexpr ActAndMulConfig value{.access = Access::elements, .log2_threads = 8, .log2_units = 3};
};
struct ByElementsOfAnyRun {
  static constexpr ActAndMulConfig value{
      .access = Access::elements, .log2_threads = 8, .log2_units = 0, .runs = Runs::any};
};

namespace {

class Executor final : public DeviceExecutor {
 public:
  using DeviceExecutor::DeviceExecutor;

 private:
  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    if (has_odd_runs(problem())) {
      return launch_act_and_mul<ByElementsOfAnyRun>(problem(), operands, device, stream);
    }
    return launch_act_and_mul<ByElements>(problem(), operands, device, stream);
  }
};

class ElementWise final : public Implementation {
 public:
  std::string_view name() const override { return "simt"; }
  bool batch_invariant() const override { return true; }
  Verdict supports(const Problem& /*problem*/) const override {
    return require_capability(least_capability, no_upper_capability, "element by element; takes everything");
  }
  std::unique_ptr<gatefold::Executor> prepare(const Problem& problem) const override {
    return std::make_unique<Executor>(problem);
  }
};

const ElementWise instance;

}  // namespace

const Implementation* simt_act_and_mul() { return &instance; }

}  // namespace gatefold::cuda
