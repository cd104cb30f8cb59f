#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/targets.hpp"
#include "support/kernels_of.hpp"

// What a row of the output depends on: its row of x and the weights, and of a batch-invariant plan nothing else.
namespace gatefold::test {
namespace {

using Bytes = std::vector<std::byte>;

class Rows : public TargetTest {
 protected:
  // How many elements of `rows` differ from those of the rows of `all` from `first` on.
  std::int64_t differing(const Bytes& rows, const Bytes& all, std::int64_t first, std::int64_t row_elements) const {
    const std::size_t size = element_size(GetParam().dtype);
    const std::byte* const of_all = all.data() + static_cast<std::size_t>(first * row_elements) * size;
    std::int64_t count = 0;
    for (std::size_t at = 0; at < rows.size(); at += size) {
      count += std::memcmp(rows.data() + at, of_all + at, size) != 0 ? 1 : 0;
    }
    return count;
  }

  // Every kernel that a batch-invariant plan can take, in several batches, against one run of the whole batch by the
  // plan's own choice.
  void expect_the_same_bits_by_every_kernel(Spec s, Random& random) {
    s.batch_invariant = true;
    SCOPED_TRACE(describe(s));
    Experiment experiment(s, random);
    if (!experiment.run(GetParam().implementation)) return;
    ++ran_;
    const Bytes all = experiment.out_bytes();
    for (const std::string& kernel : kernels_of(s, GetParam().implementation)) {
      const Plan plan(experiment.desc(kernel));
      for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{63}, std::int64_t{130}, s.tokens}) {
        for (const std::int64_t first : {std::int64_t{0}, std::min<std::int64_t>(5, s.tokens - tokens)}) {
          const Bytes rows = experiment.run_batch(plan, first, tokens);
          EXPECT_EQ(differing(rows, all, first, experiment.columns()), 0)
              << kernel << ", " << tokens << " tokens from " << first << " on, of " << rows.size() << " bytes";
          if (tokens == s.tokens) break;
        }
      }
    }
  }

  void TearDown() override {
    if (ran_ == 0 && !HasFailure()) GTEST_SKIP() << GetParam().implementation << " takes none of these descriptions";
  }

  int ran_ = 0;
};
INSTANTIATE_TEST_SUITE_P(All, Rows,
                         testing::ValuesIn(targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP})),
                         target_name);

// Sums in one part, in two and in more, and with a rest; columns in one tile and in several rounds.
TEST_P(Rows, HaveTheSameBitsByEveryKernelOfABatchInvariantPlan) {
  Random random = test_random();
  const auto [depth, columns] = GetParam().op == GATEFOLD_OP_GEMM ? std::pair{1160, 4104} : std::pair{4104, 520};
  for (const auto& [D, F] : {std::pair{136, 520}, {1160, 1032}, {4104, 2056}, {1160, 6408}, {depth, columns}}) {
    Spec s = spec(300, D, F);
    s.biases = every_bias;
    expect_the_same_bits_by_every_kernel(s, random);
  }
}

TEST_P(Rows, HaveTheSameBitsWithEveryActivation) {
  Random random = test_random();
  for (const Activation& activation : activations_of(GetParam().op)) {
    Spec s = spec(225, 264, 1032);
    s.activation = activation;
    expect_the_same_bits_by_every_kernel(s, random);
  }
}

// In any plan: the other tokens' values don't reach a row, be they large, NaN or infinite. But of sm90's silu for gate
// values in memory, four of which share a reciprocal: two of a row, two of the row eight below (FourSilu).
TEST_P(Rows, DontDependOnTheOthers) {
  const auto [op, implementation, dtype] = GetParam();
  Random random = test_random();
  // Where what two tokens share moves the last bit of a sum in fp32, one of 2^16 results in bf16 is another. So many
  // columns that some are, of the kernels of which a thread computes two tokens of a column.
  const bool two_tokens_a_thread = implementation == "sm80_even_odd";
  Spec s = spec(225, 264, two_tokens_a_thread ? 33024 : 1032);
  if (op == GATEFOLD_OP_GEMM_GATED && implementation == "sm90") s.activation = Activation::gelu_tanh();
  const auto stays = [](std::int64_t t) { return t % 7 == 3 || t == 224; };
  for (const std::string& kernel : kernels_of(s, implementation)) {
    SCOPED_TRACE(kernel);
    Experiment experiment(s, random);
    if (!experiment.run(kernel)) continue;
    ++ran_;
    const Bytes before = experiment.out_bytes();
    std::int64_t other = 0;
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      if (stays(t)) continue;
      constexpr double values[] = {-3.0, 0.0, std::numeric_limits<double>::quiet_NaN(), 100.0,
                                   -std::numeric_limits<double>::infinity()};
      const double value = values[other++ % 5];
      for (std::int64_t k = 0; k < s.hidden_size; ++k) experiment.set_x(t, k, k % 3 == 0 ? value : -0.5);
      if (op != GATEFOLD_OP_GEMM_GATED) continue;
      for (std::int64_t f = 0; f < s.intermediate_size; ++f) experiment.set_gate_operand(t, f, value);
    }
    ASSERT_TRUE(experiment.run(kernel));
    const Bytes after = experiment.out_bytes();
    const std::size_t row_bytes = before.size() / static_cast<std::size_t>(s.tokens);
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      if (!stays(t)) continue;
      const std::size_t at = static_cast<std::size_t>(t) * row_bytes;
      const Bytes row(after.begin() + static_cast<std::ptrdiff_t>(at),
                      after.begin() + static_cast<std::ptrdiff_t>(at + row_bytes));
      EXPECT_EQ(differing(row, before, t, experiment.columns()), 0) << "row " << t;
    }
  }
}

}  // namespace
}  // namespace gatefold::test
