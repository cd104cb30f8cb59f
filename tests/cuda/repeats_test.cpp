#include <cstring>
#include <iterator>

#include "differences.hpp"
#include "kernel_grid.hpp"
#include "lane.hpp"
#include "ops/targets.hpp"
#include "support/kernels_of.hpp"

// Many launches, each compared bit for bit with the first on the device.
namespace gatefold::test {
namespace {

class Repeats : public TargetTest {
 protected:
  // By each kernel. On two streams in turn, so that a launch runs beside the end of another and not always on the same
  // multiprocessors.
  void expect_the_same_bits_each_time(const Spec& s, int launches) {
    Random random = test_random();
    Experiment experiment(s, random);
    if (!experiment.run(GetParam().implementation)) GTEST_SKIP() << "not taken by " << GetParam().implementation;
    for (const std::string& kernel : kernels_of(s, GetParam().implementation)) {
      expect_the_same_bits_each_time(experiment, kernel, launches);
    }
  }

 private:
  static void expect_the_same_bits_each_time(Experiment& experiment, const std::string& kernel, int launches) {
    SCOPED_TRACE(kernel);
    const Plan plan(experiment.desc(kernel));
    experiment.run(plan);
    Differences differences(experiment.out_bytes());
    Lane lanes[] = {{experiment, plan}, {experiment, plan}};
    for (int launch = 0; launch < launches; ++launch) {
      Lane& lane = lanes[launch % 2];
      lane.run(experiment, plan);
      differences.count_and_poison(lane.out.device(), lane.stream.get());
    }
    EXPECT_EQ(differences.words(), 0U) << "of " << launches << " outputs of " << experiment.out_bytes().size()
                                       << " bytes each";
    for (Lane& lane : lanes) {
      lane.out.download();
      lane.out.expect_surroundings_unchanged("out");
    }
  }
};
INSTANTIATE_TEST_SUITE_P(All, Repeats,
                         testing::ValuesIn(targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP})),
                         target_name);

// Several tiles with a tail in every direction.
TEST_P(Repeats, AreBitIdentical) { expect_the_same_bits_each_time(spec(300, 520, 1000), thorough() ? 100000 : 200); }

// Several for each multiprocessor.
TEST_P(Repeats, OfManyTilesAreBitIdentical) {
  const auto& [tokens, hidden_size, intermediate_size] = *std::rbegin(kernel_grid);
  expect_the_same_bits_each_time(spec(tokens, hidden_size, intermediate_size), thorough() ? 10000 : 100);
}

// The comparison itself: it finds each word that differs, and leaves nothing of what it has read.
TEST(Differences, AreCountedAndPoisoned) {
  constexpr std::size_t words = 1000003;
  std::vector<std::byte> expected(words * 4, std::byte{1});
  Differences differences(expected);
  const Allocation actual(device_memory(), expected.size());
  const auto compare = [&](const std::vector<std::byte>& bytes) {
    device_memory().upload(actual.get(), bytes.data(), bytes.size());
    differences.count_and_poison(actual.get(), nullptr);
    return differences.words();
  };
  EXPECT_EQ(compare(expected), 0U);
  std::vector<std::byte> different = expected;
  for (const std::size_t byte : {std::size_t{0}, std::size_t{2000001}, words * 4 - 1}) different[byte] = std::byte{2};
  EXPECT_EQ(compare(different), 3U);
  EXPECT_EQ(compare(expected), 3U);
  device_memory().download(different.data(), actual.get(), different.size());
  EXPECT_EQ(different, std::vector<std::byte>(words * 4, std::byte{0xff}));
}

}  // namespace
}  // namespace gatefold::test
