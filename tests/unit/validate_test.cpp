#include "api/validate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/random.hpp"

namespace gatefold {
namespace {

gatefold_desc act_and_mul(std::int64_t F) {
  gatefold_desc desc{};
  desc.struct_size = sizeof desc;
  desc.op = GATEFOLD_OP_ACT_AND_MUL;
  desc.dtype = GATEFOLD_DTYPE_BF16;
  desc.device = GATEFOLD_DEVICE_CPU;
  desc.layout = GATEFOLD_LAYOUT_SEPARATE;
  desc.activation = GATEFOLD_ACTIVATION_SILU;
  desc.intermediate_size = F;
  return desc;
}

Problem validated(const gatefold_desc& desc) {
  Problem problem;
  const Status status = validate(desc, problem);
  EXPECT_TRUE(status.ok()) << status.message();
  return problem;
}

TEST(ValidateDesc, PackedMeansTheRowsLength) {
  gatefold_desc desc = act_and_mul(0);
  desc.op = GATEFOLD_OP_MLP;
  desc.hidden_size = 40;
  desc.intermediate_size = 24;
  desc.ld_out = 41;
  Problem problem = validated(desc);
  EXPECT_EQ(problem.ld_x, 40);
  EXPECT_EQ(problem.ld_gate, 40);
  EXPECT_EQ(problem.ld_up, 40);
  EXPECT_EQ(problem.ld_down, 24);
  EXPECT_EQ(problem.ld_out, 41);

  desc = act_and_mul(24);
  desc.layout = GATEFOLD_LAYOUT_UP_GATE;
  problem = validated(desc);
  EXPECT_EQ(problem.ld_gate, 48);
  EXPECT_EQ(problem.ld_out, 24);
}

TEST(ValidateDesc, FailureLeavesTheProblemAlone) {
  gatefold_desc desc = act_and_mul(24);
  desc.ld_out = 23;
  Problem problem;
  problem.ld_out = 7;
  EXPECT_FALSE(validate(desc, problem).ok());
  EXPECT_EQ(problem.ld_out, 7);
}

// The addresses of a matrix's elements, one by one.
std::set<const std::byte*> addresses(const std::byte* base, std::int64_t rows, std::int64_t columns, std::int64_t ld) {
  std::set<const std::byte*> result;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) result.insert(base + 2 * (row * ld + column));
  }
  return result;
}

bool disjoint(const std::set<const std::byte*>& a, const std::set<const std::byte*>& b) {
  return std::none_of(a.begin(), a.end(), [&](const std::byte* p) { return b.contains(p); });
}

// Matrices thrown into one buffer: none that share an element may pass, and those that lie one behind the other must.
TEST(ValidateArgs, OverlapAgainstBruteForce) {
  test::Random random = test::test_random();
  alignas(2) static std::byte arena[4096];
  const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
  int refused = 0;
  int passed = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t T = 1 + up_to(5);
    const std::int64_t F = 1 + up_to(7);
    gatefold_desc desc = act_and_mul(F);
    desc.ld_gate = F + up_to(20);
    desc.ld_out = random() % 2 == 0 ? desc.ld_gate : F + up_to(20);
    const Problem problem = validated(desc);

    gatefold_args args{};
    args.struct_size = sizeof args;
    args.tokens = T;
    args.gate = arena + 2 * up_to(100);
    args.up = arena + 3000;
    auto* out = arena + 2 * up_to(100);
    args.out = out;
    Operands operands;
    const bool accepted = validate(problem, args, operands).ok();

    const auto* gate = static_cast<const std::byte*>(args.gate);
    const bool in_place = gate == out && desc.ld_gate == desc.ld_out;
    const bool apart = disjoint(addresses(gate, T, F, desc.ld_gate), addresses(out, T, F, desc.ld_out));
    const bool one_behind_the_other =
        gate + 2 * ((T - 1) * desc.ld_gate + F) <= out || out + 2 * ((T - 1) * desc.ld_out + F) <= gate;
    ASSERT_TRUE(!accepted || apart || in_place) << "T " << T << " F " << F << " gate at " << gate - arena << " ld "
                                                << desc.ld_gate << ", out at " << out - arena << " ld " << desc.ld_out;
    ASSERT_TRUE(accepted || !one_behind_the_other);
    ASSERT_TRUE(accepted || !in_place);
    (accepted ? passed : refused) += 1;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(passed, 1000);
}

}  // namespace
}  // namespace gatefold
