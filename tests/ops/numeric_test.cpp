#include <algorithm>

#include "ops/targets.hpp"

// Every implementation against the truth, componentwise, on data that is new in every run.
namespace gatefold::test {
namespace {

class Numeric : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, Numeric, testing::ValuesIn(all_targets()), target_name);

const std::vector<std::int64_t> token_counts{1, 2, 7, 8, 9, 63, 64, 65, 200};
// Around the units of vectors, fragments and tiles, and primes.
const std::vector<std::int64_t> sizes{1,   7,   8,   9,   13,  31,  63,  64,  65,  127,
                                      128, 129, 251, 255, 256, 257, 509, 511, 512, 513};

TEST_P(Numeric, EveryLayoutAndActivation) {
  Random random = test_random();
  for (const Activation& activation : activations_of(GetParam().op)) {
    for (const Layout& layout : layouts_of(GetParam().op, 96)) {
      Spec s = spec(9, 67, 96);
      s.layout = layout;
      s.activation = activation;
      s.values = random() % 2 == 0 ? Values::zero_mean : Values::all_positive;
      expect_right(s, random);
    }
  }
}

// Each size meets each other in the thorough mode; otherwise each comes up once, with partners drawn by lot.
TEST_P(Numeric, Shapes) {
  Random random = test_random();
  const auto run = [&](std::int64_t T, std::int64_t D, std::int64_t F) {
    // The plain computation that mlp is held against takes its time.
    while (GetParam().op == GATEFOLD_OP_MLP && T * D * F > (1 << 22)) T /= 2;
    const std::vector<Layout> layouts = layouts_of(GetParam().op, F);
    Spec s = spec(T, D, F);
    s.layout = layouts[random() % layouts.size()];
    s.values = random() % 2 == 0 ? Values::zero_mean : Values::all_positive;
    expect_right(s, random);
  };
  if (thorough()) {
    for (const std::int64_t T : token_counts) {
      for (const std::int64_t D : sizes) {
        for (const std::int64_t F : sizes) run(T, D, F);
      }
    }
    return;
  }
  std::vector<std::int64_t> hidden = sizes;
  std::vector<std::int64_t> intermediate = sizes;
  std::shuffle(hidden.begin(), hidden.end(), random);
  std::shuffle(intermediate.begin(), intermediate.end(), random);
  for (std::size_t i = 0; i < sizes.size(); ++i) run(token_counts[i % token_counts.size()], hidden[i], intermediate[i]);
}

// Rests of the sum, the rows and the columns at once, around the 32 terms and 16 rows of a matrix unit's step.
TEST_P(Numeric, RestsOfEverything) {
  Random random = test_random();
  for (const std::int64_t T : {9, 65}) {
    for (const std::int64_t D : {31, 33, 62, 63, 65, 95, 127}) {
      for (const std::int64_t F : {65, 127, 251}) expect_right(spec(T, D, F), random);
    }
  }
}

TEST_P(Numeric, LeadingDimensionsAndAnyAlignment) {
  Random random = test_random();
  for (const std::int64_t shift : {0, 1, 3, 8}) {
    for (const Layout& layout : layouts_of(GetParam().op, 64)) {
      Spec s = spec(17, 72, 64);
      s.layout = layout;
      s.padding = {.x = 1, .gate = 5, .up = layout.packed() && uses_layout(s.op) ? 0 : 3, .down = 7, .out = 9};
      s.shift = shift;
      expect_right(s, random);
    }
  }
}

// Blocks wide enough to be read as runs of their own.
TEST_P(Numeric, WideBlocks) {
  Random random = test_random();
  for (const Layout& layout : layouts_of(GetParam().op, 1024)) {
    if (uses_layout(GetParam().op) && layout.block() < 64) continue;
    Spec s = spec(5, 72, 1024);
    s.layout = layout;
    expect_right(s, random);
  }
}

// Wider than any block of columns and longer than any chunk of a sum that an implementation works through at a time;
// and more tokens than any block of rows, with the last block from nearly empty to nearly full.
TEST_P(Numeric, SeveralBlocksOfEverything) {
  Random random = test_random();
  const bool operands = GetParam().op == GATEFOLD_OP_ACT_AND_MUL;
  for (const std::int64_t F :
       operands ? std::vector<std::int64_t>{4095, 4096, 4097, 9001} : std::vector<std::int64_t>{1543}) {
    expect_right(spec(GetParam().op == GATEFOLD_OP_MLP ? 5 : 33, 1031, F), random);
  }
  for (const std::int64_t T : {255, 256, 257, 300, 511, 513}) expect_right(spec(T, 40, 70), random);
  for (const std::int64_t T : {5, 33}) expect_right(spec(T, 2083, 70), random);
}

// Where many tokens meet long sums, operands are packed, or copied where their rows are a power of two apart: rests of
// groups of tokens, of blocks of the sums and of rows. And more tokens than are packed at a time.
TEST_P(Numeric, ManyTokensOfLongSums) {
  Random random = test_random();
  struct Size {
    std::int64_t T, D, F;
  };
  for (const auto& [T, D, F] : {Size{64, 1024, 64},
                                {77, 1031, 150},
                                {97, 1056, 129},
                                {130, 2080, 96},
                                {131, 1024, 97},
                                {193, 40, 2083},
                                {401, 2051, 33}}) {
    expect_right(spec(T, D, F), random);
  }
  for (const std::int64_t T : {2049, 2100}) expect_right(spec(T, 40, 33), random);
}

// Rows of x, and an mlp's of h, that are a multiple of 4 KiB apart: they may be read from elsewhere. Whole rows and
// shorter ones.
TEST_P(Numeric, RowsAPageApart) {
  Random random = test_random();
  const auto page = static_cast<std::int64_t>(4096 / element_size(GetParam().dtype));
  for (const std::int64_t T : {2, 21}) {
    for (const std::int64_t rest : {0, 27}) {
      Spec s = spec(T, page - rest, 33);
      s.padding.x = rest;
      s.shift = rest;
      expect_right(s, random);
    }
    expect_right(spec(T, 33, page), random);
  }
}

TEST_P(Numeric, EmptySizesSucceedAndEmptySumsAreZero) {
  Random random = test_random();
  for (const Layout& layout : layouts_of(GetParam().op, 32)) {
    Spec no_tokens = spec(0, 24, 32);
    no_tokens.layout = layout;
    expect_right(no_tokens, random);

    Spec no_columns = spec(5, 24, 0);
    no_columns.layout = layout;
    expect_exact(no_columns, random);  // for mlp: sums over nothing

    if (GetParam().op == GATEFOLD_OP_ACT_AND_MUL) continue;
    Spec no_sum = spec(5, 0, 32);
    no_sum.layout = layout;
    no_sum.padding.out = 2;
    expect_exact(no_sum, random);
  }
}

class Exact : public TargetTest {};
INSTANTIATE_TEST_SUITE_P(All, Exact, testing::ValuesIn(all_targets()), target_name);

// Integers whose sums and products fp32 holds exactly, through activations that keep them so (alpha = 0 makes sigma
// 1/2): the result can only be the correctly rounded one.
TEST_P(Exact, SmallIntegers) {
  Random random = test_random();
  std::vector<Activation> exact_activations{Activation::identity(), Activation::relu(),
                                            Activation::swiglu_clamped(3.0F, 0.0F, 1.0F)};
  if (!uses_activation(GetParam().op)) exact_activations.resize(1);
  for (const Activation& activation : exact_activations) {
    for (const Layout& layout : layouts_of(GetParam().op, 160)) {
      Spec s = spec(11, 137, 160);
      s.layout = layout;
      s.activation = activation;
      s.values = s.op == GATEFOLD_OP_MLP ? Values::sparse_integers : Values::small_integers;
      expect_exact(s, random);
    }
  }
}

TEST_P(Exact, EveryTailOfTheSum) {
  Random random = test_random();
  for (std::int64_t D = 1; D <= 40; ++D) {
    Spec s = spec(3, D, 24);
    s.activation = Activation::identity();
    s.values = s.op == GATEFOLD_OP_MLP ? Values::sparse_integers : Values::small_integers;
    expect_exact(s, random);
  }
}

TEST_P(Exact, EveryTailOfTheOutput) {
  Random random = test_random();
  for (std::int64_t size = 1; size <= 40; ++size) {
    Spec s = spec(size, 16, 41 - size);
    s.activation = Activation::identity();
    s.values = s.op == GATEFOLD_OP_MLP ? Values::sparse_integers : Values::small_integers;
    expect_exact(s, random);
  }
}

}  // namespace
}  // namespace gatefold::test
