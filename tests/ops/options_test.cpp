#include <algorithm>

#include "ops/targets.hpp"
#include "support/element.hpp"

// What a description may want beside an op: the same bits for a row in any batch, and an mlp in chunks of tokens.
namespace gatefold::test {
namespace {

// By whatever implementation is chosen: one target of each op and element type.
std::vector<Target> chosen_targets() {
  std::vector<Target> found;
  for (const Target& target : all_targets()) {
    const auto same = [&](const Target& other) { return other.op == target.op && other.dtype == target.dtype; };
    if (std::ranges::none_of(found, same)) found.push_back({target.op, "", target.dtype});
  }
  return found;
}

class BatchInvariant : public testing::TestWithParam<Target> {};
INSTANTIATE_TEST_SUITE_P(All, BatchInvariant, testing::ValuesIn(chosen_targets()), target_name);

TEST_P(BatchInvariant, ARowHasTheSameBitsInEveryBatch) {
  const auto [op, implementation, dtype] = GetParam();
  constexpr std::int64_t tokens = 200;
  Random random = test_random();
  Experiment experiment({.op = op,
                         .dtype = dtype,
                         .activation = Activation::silu(),
                         .tokens = tokens,
                         .hidden_size = 1160,
                         .intermediate_size = 264,
                         .biases = op == GATEFOLD_OP_ACT_AND_MUL ? Biases{} : every_bias,
                         .batch_invariant = true},
                        random);
  const Plan plan(experiment.desc());
  experiment.run(plan);
  const std::vector<std::byte> all = experiment.out_bytes();
  const std::size_t row_bytes = all.size() / tokens;

  for (const std::int64_t batch : {1, 8, 17, 64, 65, 199}) {
    for (const std::int64_t begin : {std::int64_t{0}, tokens - batch}) {
      const std::vector<std::byte> rows = experiment.run_batch(plan, begin, batch);
      for (std::int64_t t = 0; t < batch; ++t) {
        const auto row = rows.begin() + t * static_cast<std::int64_t>(row_bytes);
        ASSERT_TRUE(std::equal(row, row + static_cast<std::int64_t>(row_bytes),
                               all.begin() + (begin + t) * static_cast<std::int64_t>(row_bytes)))
            << "row " << begin + t << " of a batch of " << batch << " from " << begin << " on";
      }
    }
  }
}

TEST_P(BatchInvariant, OneImplementationTakesEveryNumberOfTokens) {
  Random random = test_random();
  const Experiment experiment({.op = GetParam().op,
                               .dtype = GetParam().dtype,
                               .activation = Activation::silu(),
                               .tokens = 1,
                               .hidden_size = 64,
                               .intermediate_size = 64,
                               .batch_invariant = true},
                              random);
  const Plan plan(experiment.desc());
  const std::string taken(plan.implementation(1));
  for (const std::int64_t tokens : {0, 16, 17, 64, 65, 512, 65536}) {
    EXPECT_EQ(std::string(plan.implementation(tokens)), taken) << tokens << " tokens";
  }
  for (const Candidate& candidate : plan.explain(512)) {
    if (candidate.eligible) continue;
    EXPECT_FALSE(candidate.chosen) << candidate.name;
    EXPECT_FALSE(candidate.reason.empty()) << candidate.name;
  }
}

std::vector<Target> composed_targets() {
  std::vector<Target> found = targets({GATEFOLD_OP_MLP});
  std::erase_if(found, [](const Target& target) { return target.implementation != "composed"; });
  return found;
}

class Chunks : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, Chunks, testing::ValuesIn(composed_targets()), target_name);

TEST_P(Chunks, AreRightAndNeedTheWorkspaceOfOne) {
  constexpr std::int64_t tokens = 150;
  Random random = test_random();
  Spec s = spec(tokens, 136, 264);
  s.padding = {.x = 8, .out = 8};
  s.biases = every_bias;
  s.batch_invariant = true;
  Experiment experiment(s, random);
  Desc desc = experiment.desc("composed");
  const Plan whole(desc);
  experiment.run(whole);
  const std::vector<std::byte> at_once = experiment.out_bytes();
  for (const std::int64_t chunk : {1, 7, 64, 149, 150, 151}) {
    SCOPED_TRACE(testing::Message() << "chunks of " << chunk);
    desc.chunk_tokens = chunk;
    const Plan plan(desc);
    EXPECT_EQ(plan.workspace_size(tokens), whole.workspace_size(std::min(chunk, tokens)));
    EXPECT_EQ(plan.workspace_size(1'000'000), whole.workspace_size(chunk));
    experiment.run(plan);
    expect_within_bounds(experiment, GATEFOLD_DATA_ZERO_MEAN);
    EXPECT_EQ(experiment.out_bytes(), at_once);
  }
}

}  // namespace
}  // namespace gatefold::test
