#include "held.hpp"
#include "differences.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"
#include "support/kernels_of.hpp"

// Where another kernel holds half of the multiprocessors for as long as it likes, runs end all the same, with the same
// bits: no block waits for one that has yet to begin. (A chain of Swap-FFN's MLPs does, and is launched as one that
// may.)
namespace gatefold::test {
namespace {

constexpr int launches = 8;

class HalfHeld : public TargetTest {
 protected:
  static void expect_the_same_bits(Experiment& experiment, const std::string& kernel) {
    SCOPED_TRACE(kernel + ", " + describe(experiment.spec()));
    const Plan plan(experiment.desc(kernel));
    experiment.run(plan);
    Differences differences(experiment.out_bytes());
    Lane lanes[] = {{experiment, plan}, {experiment, plan}};
    // Once before, since the first launch of a kernel may load it.
    for (Lane& lane : lanes) run(experiment, plan, lane, differences);
    for (Lane& lane : lanes) lane.stream.wait();

    HeldMultiprocessors held(multiprocessors() / 2);
    for (int launch = 0; launch < launches; ++launch) run(experiment, plan, lanes[launch % 2], differences);
    for (Lane& lane : lanes) lane.stream.wait();
    EXPECT_TRUE(held.release()) << "the runs ended only when no multiprocessor was held any more";
    EXPECT_EQ(differences.words(), 0U) << "of " << launches << " outputs";
    for (Lane& lane : lanes) {
      lane.out.download();
      lane.out.expect_surroundings_unchanged("out");
    }
  }

 private:
  static void run(const Experiment& experiment, const Plan& plan, Lane& lane, Differences& differences) {
    lane.run(experiment, plan);
    differences.count_and_poison(lane.out.device(), lane.stream.get());
  }
};
INSTANTIATE_TEST_SUITE_P(All, HalfHeld, testing::ValuesIn(all_targets()), target_name);

TEST_P(HalfHeld, RunsEnd) {
  Random random = test_random();
  const gatefold_op op = GetParam().op;
  const bool one_product = op != GATEFOLD_OP_ACT_AND_MUL && op != GATEFOLD_OP_MLP;
  const std::string& implementation = GetParam().implementation;
  bool taken = false;
  for (const auto& [tokens, hidden_size, intermediate_size] :
       {std::tuple{1, 2048, 2056}, {9, 4104, 2056}, {33, 1096, 3208}, {300, 520, 1000}, {673, 136, 10744}}) {
    const Spec s = spec(tokens, hidden_size, intermediate_size);
    Experiment experiment(s, random);
    if (!experiment.run(implementation)) continue;
    taken = true;
    const std::vector kernels = one_product ? kernels_of(s, implementation) : std::vector{implementation};
    for (const std::string& kernel : kernels) expect_the_same_bits(experiment, kernel);
  }
  if (!taken) GTEST_SKIP() << "not taken by " << implementation;
}

}  // namespace
}  // namespace gatefold::test
