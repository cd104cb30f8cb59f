#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda_support.hpp"
#include "kernel_grid.hpp"
#include "ops/targets.hpp"
#include "support/kernels_of.hpp"

// The products' tiles: sums, tokens and columns that end anywhere in one, with rows aligned so that the tensor core
// kernels take them, however odd their lengths are. The padding behind each row of the output holds canaries.
namespace gatefold::test {
namespace {

std::int64_t up_to_multiple_of_8(std::int64_t length) { return (length + 7) / 8 * 8; }

class Products : public TargetTest {
 protected:
  // Rows of whole 16-byte pieces; behind those of the output one piece more.
  Spec aligned(std::int64_t tokens, std::int64_t hidden_size, std::int64_t intermediate_size,
               const Layout& layout = Layout::separate()) const {
    Spec s = spec(tokens, hidden_size, intermediate_size);
    const std::int64_t behind_sum = up_to_multiple_of_8(hidden_size) - hidden_size;
    const std::int64_t behind_columns = up_to_multiple_of_8(intermediate_size) - intermediate_size;
    s.layout = layout;
    s.padding = {.x = behind_sum,
                 .gate = s.op == GATEFOLD_OP_GEMM_GATED ? behind_columns : behind_sum,
                 .up = uses_layout(s.op) && layout.packed() ? 0 : behind_sum,
                 .out = behind_columns + 8};
    return s;
  }
  // 1 in the thorough mode, otherwise a few: a loop that takes such steps has a part of all values in each run.
  static std::int64_t step(Random& random) { return thorough() ? 1 : 1 + static_cast<std::int64_t>(random() % 24); }
  static Values values(Random& random) { return random() % 2 == 0 ? Values::zero_mean : Values::all_positive; }
};
INSTANTIATE_TEST_SUITE_P(All, Products,
                         testing::ValuesIn(targets({GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP})),
                         target_name);

TEST_P(Products, TailsOfTheSum) {
  Random random = test_random();
  for (std::int64_t D = 8; D <= 700; D += step(random)) {
    Spec s = aligned(70, D, 72);
    s.values = values(random);
    expect_right(s, random);
  }
}

TEST_P(Products, TailsOfTheTokens) {
  Random random = test_random();
  for (const std::int64_t tile : {64, 128, 160, 192, 200, 208, 256, 320, 384, 416, 448, 512}) {
    for (const std::int64_t T : {tile - 1, tile, tile + 1}) {
      for (const std::int64_t F : {std::int64_t{40}, std::int64_t{264}}) {
        Spec s = aligned(T, 72, F);
        s.values = values(random);
        expect_right(s, random);
      }
    }
  }
}

// As many as the kernels for few tokens take at once, by every one of them; sums long enough to be divided.
TEST_P(Products, TailsOfFewTokens) {
  Random random = test_random();
  for (const std::int64_t tile : {8, 16, 24, 32, 48, 64}) {
    for (const std::int64_t T : {tile - 7, tile - 1, tile, tile + 1}) {
      Spec s = aligned(T, 1096, 136);
      s.values = values(random);
      expect_right(s, random);
    }
  }
}

TEST_P(Products, TailsOfTheColumns) {
  Random random = test_random();
  for (const std::int64_t tile : {32, 64, 96, 128, 192, 256, 384, 512}) {
    for (const std::int64_t F : {tile - 8, tile - 1, tile, tile + 1, tile + 8}) {
      Spec s = aligned(65, 80, F);
      s.values = values(random);
      expect_right(s, random);
    }
  }
}

TEST_P(Products, EveryLayoutOverSeveralTiles) {
  Random random = test_random();
  for (const Layout& layout : layouts_of(GetParam().op, 384)) {
    for (const std::int64_t D : {64, 77, 200}) {
      Spec s = aligned(193, D, 384, layout);
      s.values = values(random);
      expect_right(s, random);
    }
  }
}

// Tiles cut in every way, and several for each multiprocessor, by every kernel whatever the choice would be; and a sum
// that ends within 16 bytes, where there is padding.
TEST_P(Products, EveryCompiledKernel) {
  Random random = test_random();
  std::vector<Spec> specs{aligned(193, 1157, 520)};
  if (GetParam().op == GATEFOLD_OP_GEMM) specs.push_back(aligned(193, 21000, 136));  // whose parts are not by turns
  for (const GridShape& shape : kernel_grid) {
    specs.push_back(spec(shape.tokens, shape.hidden_size, shape.intermediate_size));
  }
  for (Spec& s : specs) {
    s.values = values(random);
    expect_right_by_each(kernels_of(s, GetParam().implementation), s, random);
  }
}

// Each vector alone, and all, in every layout: over several tiles, and past the last column, where there is no bias.
TEST_P(Products, BiasesByEveryCompiledKernel) {
  Random random = test_random();
  const GridShape shapes[] = {{50, 136, 520}, {193, 1160, 1032}};
  const Biases biases[] = {{.gate = true}, {.up = true}, {.gate = true, .up = true}};
  for (const GridShape& shape : shapes) {
    for (const Layout& layout : layouts_of(GetParam().op, shape.intermediate_size)) {
      Spec s = spec(shape.tokens, shape.hidden_size, shape.intermediate_size);
      s.layout = layout;
      s.values = values(random);
      const std::vector<std::string> kernels = kernels_of(s, GetParam().implementation);
      s.biases = GetParam().op == GATEFOLD_OP_GATE_UP ? biases[random() % 3] : Biases{.up = true};
      EXPECT_EQ(kernels_of(s, GetParam().implementation), kernels);
      expect_right_by_each(kernels, s, random);
    }
  }
}

// Where there is a kernel for few tokens it may divide the sums among blocks.
TEST_P(Products, DividedSumsOfFewTokens) {
  if (GetParam().implementation.find("decode") == std::string::npos) GTEST_SKIP() << "has no kernels for few tokens";
  Random random = test_random();
  for (const GridShape& shape : few_tokens_grid) {
    Spec s = spec(shape.tokens, shape.hidden_size, shape.intermediate_size);
    s.values = values(random);
    expect_right_by_each(kernels_of(s, GetParam().implementation), s, random);
  }
}

// The architectures' own kernels are listed, are taken where they can run, and can be passed over by name.
TEST(Listed, ArchitecturesAndForcing) {
  gatefold_device_info info{};
  ASSERT_EQ(gatefold_device_query(GATEFOLD_DEVICE_CUDA, 0, &info), GATEFOLD_SUCCESS);
  const bool hopper = std::strcmp(info.features, "sm_90") == 0;
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP}) {
    SCOPED_TRACE(name(op));
    std::vector<std::string> names;
    for (int i = 0; const char* listed = gatefold_implementation_name(op, GATEFOLD_DEVICE_CUDA, i); ++i) {
      names.emplace_back(listed);
    }
    EXPECT_NE(std::find(names.begin(), names.end(), "sm90"), names.end());
    EXPECT_EQ(names.back(), "simt");
    if (!hopper) continue;
    Random random = test_random();
    const Experiment experiment({.op = op,
                                 .dtype = GATEFOLD_DTYPE_BF16,
                                 .activation = Activation::silu(),
                                 .tokens = 256,
                                 .hidden_size = 128,
                                 .intermediate_size = 256},
                                random);
    for (const char* forced : {"sm90", "sm80", "simt", "decode", "sm90_decode"}) {
      if (std::find(names.begin(), names.end(), forced) == names.end()) continue;  // no gemm_gated
      EXPECT_EQ(std::string(Plan(experiment.desc(forced)).implementation(256)), forced);
    }
    for (const std::string& kernel : kernels_of(experiment.spec(), "sm90")) {
      const Plan plan(experiment.desc(kernel));
      EXPECT_EQ(std::string(plan.implementation(256)), "sm90");
      const std::string expected = "forced by name; " + kernel.substr(std::strlen("sm90:"));
      const std::vector<Candidate> candidates = plan.explain(256);
      const auto taken = std::ranges::find(candidates, "sm90", &Candidate::name);
      ASSERT_NE(taken, candidates.end());
      EXPECT_EQ(taken->reason.substr(0, expected.size()), expected);
    }
    EXPECT_EQ(std::string(Plan(experiment.desc()).implementation(256)), "sm90");
  }
}

}  // namespace
}  // namespace gatefold::test
