#include <omp.h>

#include "ops/targets.hpp"
#include "support/element.hpp"

// On the CPU, by the loops: a token gets the same bits alone and among any others, on any number of threads.
namespace gatefold::test {
namespace {

constexpr int thread_counts[] = {1, 2, 7};
constexpr std::int64_t all_tokens = 513;
constexpr std::int64_t hidden_size = 2083;  // more than a block of the sums, and a rest
constexpr std::int64_t intermediate_size = 150;

std::vector<Target> loops() {
  std::vector<Target> found = targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP});
  std::erase_if(found, [](const Target& target) { return target.implementation.rfind("loops", 0) != 0; });
  return found;
}

class Batch : public TargetTest {
 protected:
  ~Batch() override { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};
INSTANTIATE_TEST_SUITE_P(All, Batch, testing::ValuesIn(loops()), target_name);

TEST_P(Batch, DoesntChangeARow) {
  Random random = test_random();
  Spec s = spec(all_tokens, hidden_size, intermediate_size);
  s.biases = every_bias;
  Experiment experiment(s, random);
  const Plan plan(experiment.desc(GetParam().implementation));
  experiment.run(plan);
  const std::vector<std::byte> all = experiment.out_bytes();
  const Args args = experiment.host_args();
  const auto element = static_cast<std::int64_t>(element_size(GetParam().dtype));
  const std::int64_t row_bytes = intermediate_size * element;
  const auto offset = [&](const void* base, std::int64_t elements) {
    return static_cast<const std::byte*>(base) + elements * element;
  };

  for (const int threads : thread_counts) {
    omp_set_num_threads(threads);
    const Plan of_threads(experiment.desc(GetParam().implementation));
    const Workspace workspace(of_threads.workspace_size(all_tokens));
    for (const std::int64_t batch : {1, 2, 7, 64, 500}) {
      for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{5}, all_tokens - batch}) {
        if (begin + batch > all_tokens) continue;
        std::vector<std::byte> out(static_cast<std::size_t>(batch * row_bytes));
        Args some = args;
        some.tokens = batch;
        some.x = offset(args.x, begin * hidden_size);
        if (GetParam().op == GATEFOLD_OP_GEMM_GATED) some.gate = offset(args.gate, begin * intermediate_size);
        some.out = out.data();
        some.workspace = workspace;
        of_threads.run(some);
        ASSERT_TRUE(std::equal(out.begin(), out.end(), all.begin() + begin * row_bytes))
            << batch << " tokens from " << begin << " on, " << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
