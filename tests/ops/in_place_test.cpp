#include "ops/targets.hpp"

// On the CPU: act_and_mul over gate or over up gives what it gives elsewhere, also where a row is longer than any piece
// that is worked on at a time. (A last piece that reaches back would read columns that are finished.)
namespace gatefold::test {
namespace {

TEST(InPlace, LongRows) {
  Random random = test_random();
  for (int i = 0;
       const char* implementation = gatefold_implementation_name(GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_DEVICE_CPU, i);
       ++i) {
    for (const std::int64_t F : {511, 513, 700, 1025, 4097, 5000}) {
      SCOPED_TRACE(std::string(implementation) + ", F " + std::to_string(F));
      const Desc desc{.op = GATEFOLD_OP_ACT_AND_MUL,
                      .dtype = GATEFOLD_DTYPE_FP32,
                      .device = GATEFOLD_DEVICE_CPU,
                      .layout = Layout::separate(),
                      .activation = Activation::silu(),
                      .intermediate_size = F,
                      .implementation = implementation};
      const Plan plan(desc);
      std::normal_distribution<float> normal;
      std::vector<float> gate(static_cast<std::size_t>(3 * F));
      std::vector<float> up(gate.size());
      std::vector<float> out(gate.size());
      for (float& value : gate) value = normal(random);
      for (float& value : up) value = normal(random);
      plan.run({.tokens = 3, .gate = gate.data(), .up = up.data(), .out = out.data()});
      std::vector<float> over_gate = gate;
      plan.run({.tokens = 3, .gate = over_gate.data(), .up = up.data(), .out = over_gate.data()});
      EXPECT_EQ(over_gate, out);
      plan.run({.tokens = 3, .gate = gate.data(), .up = up.data(), .out = up.data()});
      EXPECT_EQ(up, out);
    }
  }
}

}  // namespace
}  // namespace gatefold::test
