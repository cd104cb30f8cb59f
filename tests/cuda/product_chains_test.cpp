#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <gatefold/gatefold.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cuda_support.hpp"
#include "support/kernels_of.hpp"
#include "support/random.hpp"

// Chains (chains_test.cpp) of products, by the name of each compiled kernel, and of an mlp's two in one workspace.
namespace gatefold::test {
namespace {

// Each kernel's product reads what the one before it has just written, and writes over what that one has just read. The
// weights permute the columns, so that every number comes through all products unchanged.
class ProductChains : public testing::TestWithParam<const char*> {
 protected:
  static constexpr std::int64_t size = 1024;  // hidden_size and intermediate_size
  static constexpr int runs = 40;
  static constexpr std::int64_t shift = 129;  // columns by which a product turns its input

  static std::vector<std::string> kernels(std::int64_t tokens) {
    return kernels_of({.op = GATEFOLD_OP_GEMM,
                       .dtype = GATEFOLD_DTYPE_BF16,
                       .tokens = tokens,
                       .hidden_size = size,
                       .intermediate_size = size},
                      GetParam());
  }
  static Allocation upload(const std::vector<std::uint16_t>& values) {
    Allocation memory(device_memory(), values.size() * sizeof values[0]);
    device_memory().upload(memory.get(), values.data(), values.size() * sizeof values[0]);
    return memory;
  }
};
INSTANTIATE_TEST_SUITE_P(All, ProductChains, testing::Values("sm90", "sm80", "decode", "sm90_decode"),
                         [](const auto& family) { return std::string(family.param); });

TEST_P(ProductChains, KeepTheirOrderByEveryKernel) {
  std::vector<std::uint16_t> turn(size * size, 0);
  for (std::int64_t f = 0; f < size; ++f) turn[static_cast<std::size_t>(f * size + (f + shift) % size)] = 0x3f80;  // 1
  const Allocation weights = upload(turn);
  for (const std::int64_t tokens : {40, 128, 520}) {
    std::vector<std::uint16_t> start;
    for (std::int64_t i = 0; i < tokens * size; ++i) start.push_back(static_cast<std::uint16_t>(0x3f80 + i % 251));
    for (const std::string& kernel : kernels(tokens)) {
      SCOPED_TRACE(testing::Message() << kernel << ", " << tokens << " tokens");
      const Allocation first = upload(start);
      const Allocation second = upload(std::vector<std::uint16_t>(start.size(), 0xffff));  // NaN
      std::optional<Plan> plan;
      try {
        plan.emplace(Desc{.op = GATEFOLD_OP_GEMM,
                          .dtype = GATEFOLD_DTYPE_BF16,
                          .device = GATEFOLD_DEVICE_CUDA,
                          .hidden_size = size,
                          .intermediate_size = size,
                          .implementation = kernel});
      } catch (const Error& error) {
        ASSERT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED) << error.what();
        GTEST_SKIP() << error.what();
      }
      const std::size_t bytes = plan->workspace_size(tokens);
      const Allocation workspace(device_memory(), bytes);
      const Stream stream;
      for (int run = 0; run < runs; ++run) {
        plan->run({.tokens = tokens,
                   .x = (run % 2 == 0 ? first : second).get(),
                   .up = weights.get(),
                   .out = (run % 2 == 0 ? second : first).get(),
                   .workspace = {workspace.get(), bytes},
                   .stream = stream.get()});
      }
      stream.wait();
      std::vector<std::uint16_t> result(start.size());
      device_memory().download(result.data(), first.get(), result.size() * sizeof result[0]);
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t f = 0; f < size; ++f) {
          const std::int64_t from = t * size + (f + shift * runs) % size;
          ASSERT_EQ(result[static_cast<std::size_t>(t * size + f)], start[static_cast<std::size_t>(from)])
              << t << ", " << f;
        }
      }
    }
  }
}

// GATEFOLD_IMPL until the end of the scope; "" leaves it out.
class Forced {
 public:
  explicit Forced(const std::string& name) {
    if (!name.empty()) setenv("GATEFOLD_IMPL", name.c_str(), 1);
  }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
  ~Forced() { unsetenv("GATEFOLD_IMPL"); }
};

struct MlpSize {
  std::int64_t tokens, hidden_size, intermediate_size;
};

// One number in eight is `value`, the others are 0.
Allocation sparse_numbers(std::int64_t count, std::uint16_t value, Random& random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t& v : values) v = random() % 8 == 0 ? value : 0;
  Allocation memory(device_memory(), values.size() * 2);
  device_memory().upload(memory.get(), values.data(), values.size() * 2);
  return memory;
}

// By what GATEFOLD_IMPL names, "" for what is chosen. None where a family of 9.0 is asked for and the device is none.
std::optional<Plan> mlp_plan(const std::string& family, const Layout& layout, std::int64_t hidden_size,
                             std::int64_t intermediate_size) {
  const Forced forced(family);
  try {
    return Plan(Desc{.op = GATEFOLD_OP_MLP,
                     .dtype = GATEFOLD_DTYPE_BF16,
                     .device = GATEFOLD_DEVICE_CUDA,
                     .layout = layout,
                     .activation = Activation::silu(),
                     .hidden_size = hidden_size,
                     .intermediate_size = intermediate_size});
  } catch (const Error&) {
    if (is_hopper() || family.find("sm90") == std::string::npos) throw;
    return std::nullopt;
  }
}

// An mlp's two products share a workspace, and the next run's first product writes there what this one's second reads.
void expect_the_same_with_and_without_pauses(const char* family, const MlpSize& size, Random& random) {
  const std::int64_t tokens = size.tokens;
  const std::int64_t D = size.hidden_size;
  const std::int64_t F = size.intermediate_size;
  SCOPED_TRACE(testing::Message() << family << " " << tokens << " tokens, " << D << " x " << F);
  const std::optional<Plan> plan = mlp_plan(family, Layout::separate(), D, F);
  if (!plan) return;
  const auto numbers = [&](std::int64_t count) { return sparse_numbers(count, 0x3f80, random); };  // 1
  const Allocation x = numbers(tokens * D), gate = numbers(F * D), up = numbers(F * D), down = numbers(D * F);
  const Allocation other_x = numbers(tokens * D);
  const auto out_bytes = static_cast<std::size_t>(tokens * D * 2);
  const Allocation out(device_memory(), out_bytes), other_out(device_memory(), out_bytes);
  const std::size_t bytes = plan->workspace_size(tokens);
  const Allocation workspace(device_memory(), bytes);
  const Stream stream;
  const auto run = [&](const Allocation& from, const Allocation& to) {
    plan->run({.tokens = tokens,
               .x = from.get(),
               .gate = gate.get(),
               .up = up.get(),
               .down = down.get(),
               .out = to.get(),
               .workspace = {workspace.get(), bytes},
               .stream = stream.get()});
  };
  const auto result = [&](const Allocation& from) {
    stream.wait();
    std::vector<std::uint16_t> values(static_cast<std::size_t>(tokens * D));
    device_memory().download(values.data(), from.get(), values.size() * 2);
    return values;
  };
  run(x, out);
  const std::vector<std::uint16_t> expected = result(out);
  run(other_x, other_out);
  const std::vector<std::uint16_t> other_expected = result(other_out);
  ASSERT_NE(expected, other_expected);
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (int i = 0; i < 5; ++i) {
      run(x, out);
      run(other_x, other_out);
    }
    ASSERT_EQ(result(out), expected) << "repeat " << repeat;
    ASSERT_EQ(result(other_out), other_expected) << "repeat " << repeat;
  }
}

TEST(MlpChain, IsTheSameWithAndWithoutPauses) {
  Random random = test_random();
  for (const char* family : {"", "sm80", "sm90", "decode", "sm90_decode"}) {
    expect_the_same_with_and_without_pauses(family, {200, 1024, 768}, random);
  }
}

// What is chosen for few tokens is of two families on compute capability 9.0: decode, and sm90 in parts for a w_down of
// 20 MB and more and of more than 3072 terms. Of more weights sm90_decode stands before those.
TEST(MlpChain, OfTwoFamiliesIsTheSameWithAndWithoutPauses) {
  Random random = test_random();
  for (const std::int64_t tokens : {1, 8, 12, 40}) {
    for (const char* family : {"", "gate_up=sm90_decode"}) {
      expect_the_same_with_and_without_pauses(family, {tokens, 2560, 4104}, random);
      expect_the_same_with_and_without_pauses(family, {tokens, 5120, 3080}, random);
    }
  }
}

// Weights that a product writes right before the mlp: gate and up's last, or down's. That product sums 8192 terms, on
// 96 or 48 multiprocessors (tiles of 128x128), beside which both of the mlp's kernels find room: whatever they read
// before it has ended is the other set of weights.
TEST(MlpChain, ReadsWeightsThatWereWrittenJustBefore) {
  Random random = test_random();
  constexpr std::int64_t D = 1024;
  constexpr std::int64_t F = 768;
  constexpr std::int64_t terms = 8192;
  constexpr std::int64_t most_tokens = 40;
  const auto numbers = [&](std::int64_t count, std::uint16_t value) { return sparse_numbers(count, value, random); };
  const Allocation x = numbers(most_tokens * D, 0x3f80);  // 1
  // gate_up [2 F, D] and down [D, F] are one of two factors times this one, so of two sets.
  const Allocation columns = numbers(D * terms, 0x3c80);  // 1 / 64: D rows, of which down takes F
  const Allocation rows[] = {numbers(2 * F * terms, 0x3f80), numbers(2 * F * terms, 0x3f80)};
  const Allocation gate_up(device_memory(), 2 * F * D * 2), down(device_memory(), D * F * 2);
  const Allocation out(device_memory(), most_tokens * D * 2);
  const auto writer = [](std::int64_t width) {
    Desc desc{.op = GATEFOLD_OP_GEMM,
              .dtype = GATEFOLD_DTYPE_BF16,
              .device = GATEFOLD_DEVICE_CUDA,
              .hidden_size = terms,
              .intermediate_size = width,
              .implementation = "sm90:128x128 cluster 1x1 pingpong"};
    try {
      return Plan(desc);
    } catch (const Error&) {  // the device is none of 9.0
      desc.implementation = "";
      return Plan(desc);
    }
  };
  const Plan write_gate_up = writer(D), write_down = writer(F);
  for (const char* family : {"", "decode", "sm90_decode"}) {
    const std::optional<Plan> plan = mlp_plan(family, Layout::gate_up(), D, F);
    if (!plan) continue;
    const std::size_t bytes = std::max(
        {plan->workspace_size(most_tokens), write_down.workspace_size(D), write_gate_up.workspace_size(2 * F)});
    const Allocation workspace(device_memory(), bytes);
    const Stream stream;
    const auto run = [&](std::int64_t tokens, int set, bool down_last, bool pauses) {
      for (const bool of_down : {!down_last, down_last}) {
        (of_down ? write_down : write_gate_up)
            .run({.tokens = of_down ? D : 2 * F,
                  .x = rows[set].get(),
                  .up = columns.get(),
                  .out = (of_down ? down : gate_up).get(),
                  .workspace = {workspace.get(), bytes},
                  .stream = stream.get()});
        if (pauses) stream.wait();
      }
      plan->run({.tokens = tokens,
                 .x = x.get(),
                 .gate = gate_up.get(),
                 .down = down.get(),
                 .out = out.get(),
                 .workspace = {workspace.get(), bytes},
                 .stream = stream.get()});
    };
    const auto result = [&](std::int64_t tokens) {
      stream.wait();
      std::vector<std::uint16_t> values(static_cast<std::size_t>(tokens * D));
      device_memory().download(values.data(), out.get(), values.size() * 2);
      return values;
    };
    for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{12}, most_tokens}) {
      std::vector<std::uint16_t> expected[2];
      for (const int set : {0, 1}) {
        run(tokens, set, true, true);
        expected[set] = result(tokens);
      }
      ASSERT_NE(expected[0], expected[1]);
      for (int repeat = 0; repeat < 40; ++repeat) {
        const int set = repeat % 2;
        const bool down_last = repeat / 2 % 2 == 0;
        run(tokens, 1 - set, down_last, true);  // what is read too early
        run(tokens, set, down_last, false);
        ASSERT_EQ(result(tokens), expected[set]) << family << ", " << tokens << " tokens, repeat " << repeat;
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
