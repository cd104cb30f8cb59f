#include <string>
#include <vector>

#include "ops/targets.hpp"
#include "support/kernels_of.hpp"

// Shapes, layouts, strides and alignments that nobody chose.
namespace gatefold::test {
namespace {

class RandomSpecs : public TargetTest {
 protected:
  static std::int64_t up_to(std::int64_t most, Random& random) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  }
  // Half of the sizes are multiples of 16, which the fast kernels take.
  static std::int64_t size(std::int64_t most, Random& random) {
    const std::int64_t value = up_to(most, random);
    return random() % 2 == 0 ? (value + 15) / 16 * 16 : value;
  }
  static std::int64_t padding(Random& random) {
    const std::int64_t choices[] = {0, 0, 16, up_to(20, random)};
    return choices[random() % 4];
  }

  Spec draw(Random& random) const {
    Spec s = spec(up_to(300, random), size(600, random), size(600, random));
    if (s.op == GATEFOLD_OP_MLP) s.tokens = up_to(12, random);
    const std::vector<Layout> layouts = layouts_of(s.op, s.intermediate_size);
    s.layout = layouts[random() % layouts.size()];
    const std::vector<Activation> activations = activations_of(s.op);
    s.activation = activations[random() % activations.size()];
    s.values = random() % 2 == 0 ? Values::zero_mean : Values::all_positive;
    const bool one_weight_tensor = uses_layout(s.op) && s.layout.packed();
    s.padding = {.x = padding(random),
                 .gate = padding(random),
                 .up = one_weight_tensor ? 0 : padding(random),
                 .down = padding(random),
                 .out = padding(random)};
    s.shift = random() % 3 == 0 ? up_to(8, random) : 0;
    return s;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RandomSpecs, testing::ValuesIn(all_targets()), target_name);

int specs() { return thorough() ? 200 : 20; }

TEST_P(RandomSpecs, AreWithinTheBound) {
  Random random = test_random();
  for (int i = 0; i < specs() && !HasFatalFailure(); ++i) expect_right(draw(random), random);
}

// For sizes as these the choice takes an implementation's small tiles. So here one of its kernels is drawn, for so many
// columns that there may be several tiles for each multiprocessor, with rows that all of them can copy.
class RandomKernels : public RandomSpecs {
 protected:
  Spec draw_wide(Random& random) const {
    Spec s = draw(random);
    s.hidden_size = up_to(150, random);
    s.intermediate_size = size(12000, random);
    const std::vector<Layout> layouts = layouts_of(s.op, s.intermediate_size);
    s.layout = layouts[random() % layouts.size()];
    s.shift = 0;
    const std::int64_t behind_sum = 8 - s.hidden_size % 8;
    s.padding.x = s.padding.up = behind_sum;
    if (s.op == GATEFOLD_OP_GATE_UP) s.padding.gate = behind_sum;
    if (uses_layout(s.op) && s.layout.packed()) s.padding.up = 0;
    return s;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RandomKernels,
                         testing::ValuesIn(targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP})),
                         target_name);

TEST_P(RandomKernels, AreWithinTheBound) {
  Random random = test_random();
  for (int i = 0; i < specs() && !HasFatalFailure(); ++i) {
    const Spec s = draw_wide(random);
    const std::vector<std::string> kernels = kernels_of(s, GetParam().implementation);
    expect_right_by(kernels[random() % kernels.size()], s, random);
  }
}

}  // namespace
}  // namespace gatefold::test
