#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "core/float16.hpp"
#include "core/row_stride.hpp"
#include "cpu/loops/executor.hpp"
#include "cpu/threads.hpp"

// Outer products against tiles (cpu/loops/executor.cpp), whatever caches this machine has: an executor that is told of
// Zen 5's caches packs x, and an mlp's h, one that is told of Zen 4's doesn't. Each sum's bits are the same, and those
// of tiles are held against double precision elsewhere.
namespace gatefold::cpu {
namespace {

constexpr Caches that_pack{49152, 1048576};
constexpr Caches that_do_not{32768, 1048576};
constexpr std::byte poison{0xa5};

using Bytes = std::vector<std::byte>;

// As the machine's own, but for fewer tokens and shorter sums; none where it has no outer products.
std::vector<Kernel> eager_kernels(DType dtype) {
  std::vector<Kernel> kernels;
  for (const Kernel* kernel : kernels_for(dtype)) {
    if (kernel->outer.from == 0) continue;
    kernels.push_back(*kernel);
    kernels.back().outer.from = 2;
    kernels.back().outer.terms = 1;
  }
  return kernels;
}

// So many threads run what is made from here on; without OpenMP always one.
void set_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

class Outer : public testing::TestWithParam<std::tuple<DType, int>> {
 protected:
  ~Outer() override { set_threads(before_); }

  Outer() {
    set_threads(std::get<1>(GetParam()));
    const std::uint64_t seed = std::random_device{}();
    std::cout << "seed " << seed << '\n';
    random_.seed(seed);
  }

  static DType dtype() { return std::get<0>(GetParam()); }

  Bytes numbers(std::int64_t count) {
    std::normal_distribution<float> normal;
    Bytes bytes(static_cast<std::size_t>(count * size_of(dtype())));
    for (std::int64_t i = 0; i < count; ++i) store(bytes.data(), dtype(), i, normal(random_));
    return bytes;
  }

  Problem problem(Op op, std::int64_t hidden_size, std::int64_t intermediate_size) const {
    Problem p;
    p.op = op;
    p.types = ElementTypes::all(dtype());
    p.layout = Layout{LayoutKind::separate};
    p.hidden_size = p.ld_x = p.ld_gate = p.ld_up = hidden_size;
    p.intermediate_size = p.ld_out = intermediate_size;
    if (op == Op::gemm_gated) p.ld_gate = intermediate_size;
    return p;
  }

  std::mt19937_64 random_;

 private:
  int before_ = thread_limit();
};
INSTANTIATE_TEST_SUITE_P(All, Outer,
                         testing::Combine(testing::Values(DType::fp32, DType::bf16), testing::Values(1, 2, 7)));

// The workspace holds what workspace_size says, and a canary behind it.
void run(const Executor& executor, Operands operands, std::int64_t max_tokens) {
  const std::size_t size = executor.workspace_size(max_tokens);
  Bytes memory(size + 256, poison);
  std::byte* workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  operands.workspace = workspace;
  operands.workspace_size = size;
  ASSERT_TRUE(executor.run(operands).ok());
  for (const std::byte* at = workspace + size; at < &memory.back(); ++at)
    ASSERT_EQ(*at, poison) << "the workspace's end";
}

bool all_are(std::byte value, const Bytes& bytes, std::size_t from) {
  return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                     [&](std::byte byte) { return byte == value; });
}

constexpr std::int64_t token_counts[]{2, 9, 11, 12, 13, 64, 264, 409, 517, 2060};  // mod 6: all

TEST_P(Outer, ProductsHaveTheBitsOfTiles) {
  const std::vector<Kernel> kernels = eager_kernels(dtype());
  if (kernels.empty()) GTEST_SKIP() << "no kernel of this machine has outer products of " << to_string(dtype());
  for (const auto& [hidden_size, intermediate_size] : {std::pair{70, 33}, {2100, 130}}) {
    for (const Op op : {Op::gemm, Op::gemm_gated, Op::gate_up}) {
      Problem p = problem(op, hidden_size, intermediate_size);
      p.ld_x += 3;
      p.ld_out += 5;
      p.biases = {op == Op::gate_up, op != Op::gemm_gated, false};
      const Bytes gate = numbers((p.intermediate_size + 2060) * (p.hidden_size + p.intermediate_size));
      const Bytes up = numbers(p.intermediate_size * p.hidden_size);
      const Bytes biases = numbers(2 * p.intermediate_size);
      for (const std::int64_t tokens : token_counts) {
        const Bytes x = numbers(tokens * p.ld_x);
        Operands operands{.tokens = tokens, .x = x.data(), .gate = gate.data(), .up = up.data()};
        if (p.biases.gate) operands.gate_bias = biases.data();
        if (p.biases.up) operands.up_bias = biases.data() + p.intermediate_size * size_of(dtype());
        Bytes expected(static_cast<std::size_t>(tokens * p.ld_out * size_of(dtype())), poison);
        Bytes out = expected;
        for (const Kernel& kernel : kernels) {
          operands.out = expected.data();
          run(*make_executor(p, kernel, that_do_not), operands, tokens);
          for (const std::int64_t room : {tokens, std::int64_t{2060}}) {
            std::fill(out.begin(), out.end(), poison);
            operands.out = out.data();
            const auto executor = make_executor(p, kernel, that_pack);
            // Up to the first comma it names its instruction set, whose peak `gatefold bench --roofline` looks up.
            ASSERT_TRUE(executor->describe(tokens).starts_with(std::string(kernel.name) + ", outer products, "));
            run(*executor, operands, room);
            ASSERT_EQ(out, expected) << kernel.name << ", " << to_string(op) << ", D " << hidden_size << ", F "
                                     << intermediate_size << ", " << tokens << " tokens, room for " << room;
          }
        }
      }
    }
  }
}

// No number of tokens is too many to be asked about.
TEST_P(Outer, AnyNumberOfTokensIsDescribed) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Kernel& kernel : eager_kernels(dtype())) {
    for (const Op op : {Op::gemm, Op::gate_up}) {
      const auto executor = make_executor(problem(op, 70, 33), kernel, that_pack);
      EXPECT_NE(executor->describe(most).find("outer products"), std::string::npos);
      EXPECT_EQ(executor->workspace_size(most), executor->workspace_size(1000000));
    }
  }
}

// A workspace for many tokens is one for fewer, whose rows of x are copied: 4096 elements lie a multiple of 4 KiB
// apart.
TEST_P(Outer, RoomForMoreTokensHoldsFewer) {
  for (const Kernel* kernel : kernels_for(dtype())) {
    if (kernel->outer.from == 0) continue;
    for (const Op op : {Op::gemm, Op::gemm_gated, Op::gate_up}) {
      for (const bool in_mlp : {false, true}) {
        Problem p = problem(op, 4096, 2048);
        p.own_h = p.has_spare = in_mlp && op != Op::gemm_gated;
        const auto executor = make_executor(p, *kernel, that_pack);
        for (std::int64_t tokens = 1; tokens < kernel->outer.from + 20; ++tokens) {
          EXPECT_LE(executor->workspace_size(tokens), executor->workspace_size(tokens + 1))
              << kernel->name << ", " << to_string(op) << ", " << tokens << " tokens, in an mlp " << in_mlp;
        }
        // Up to 400 tokens are packed at once.
        const std::int64_t many = kernel->outer.from + 20;
        EXPECT_LE(executor->workspace_size(many), executor->workspace_size(5000)) << kernel->name << to_string(op);
      }
    }
  }
}

// y by h that passes in the kernel's order, and by h in rows; h takes no more bytes than its rows, and x, packed in y's
// place where rows are whole lines, no more than y's.
TEST_P(Outer, AnMlpHasTheBitsOfTiles) {
  const std::vector<Kernel> kernels = eager_kernels(dtype());
  if (kernels.empty()) GTEST_SKIP() << "no kernel of this machine has outer products of " << to_string(dtype());
  const std::int64_t line = cache_line_bytes / size_of(dtype());
  for (const auto& [hidden_size, intermediate_size] : {std::pair{70, 33}, {130, 2100}, {33, 64}, {2112, 70}}) {
    Problem gate_up = problem(Op::gate_up, hidden_size, intermediate_size);
    gate_up.ld_out = (intermediate_size + line - 1) / line * line;
    Problem down = problem(Op::gemm, intermediate_size, hidden_size);
    down.ld_x = gate_up.ld_out;
    const Bytes gate = numbers(gate_up.intermediate_size * gate_up.hidden_size);
    const Bytes up = numbers(gate_up.intermediate_size * gate_up.hidden_size);
    const Bytes w_down = numbers(gate_up.intermediate_size * gate_up.hidden_size);
    for (const std::int64_t tokens : token_counts) {
      const Bytes x = numbers(tokens * gate_up.ld_x);
      for (const Kernel& kernel : kernels) {
        Bytes y[2];
        for (const bool own_h : {false, true}) {
          gate_up.own_h = gate_up.has_spare = down.own_h = own_h;
          const Caches& caches = own_h ? that_pack : that_do_not;
          const auto h_bytes = static_cast<std::size_t>(tokens * gate_up.ld_out * size_of(dtype()));
          const auto y_bytes = static_cast<std::size_t>(tokens * down.ld_out * size_of(dtype()));
          Bytes h(h_bytes + 64, std::byte{0xff});  // NaN
          // An element off the alignment of words: the place of x is any y's.
          const auto shift = static_cast<std::size_t>(size_of(dtype()));
          y[own_h].assign(shift + y_bytes + 64, poison);
          std::byte* const out = y[own_h].data() + shift;
          const auto first = make_executor(gate_up, kernel, caches);
          run(*first,
              {.tokens = tokens, .x = x.data(), .gate = gate.data(), .up = up.data(), .out = h.data(), .spare = out},
              tokens);
          EXPECT_TRUE(all_are(std::byte{0xff}, h, h_bytes));
          EXPECT_TRUE(all_are(poison, y[own_h], shift + y_bytes));
          const bool packed_there = own_h && hidden_size * size_of(dtype()) % cache_line_bytes == 0;
          EXPECT_EQ(all_are(poison, y[own_h], 0), !packed_there);
          run(*make_executor(down, kernel, caches), {.tokens = tokens, .x = h.data(), .up = w_down.data(), .out = out},
              tokens);
        }
        ASSERT_EQ(y[true], y[false]) << kernel.name << ", D " << hidden_size << ", F " << intermediate_size << ", "
                                     << tokens << " tokens";
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::cpu
