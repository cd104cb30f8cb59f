#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <gatefold/gatefold.hpp>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cuda_support.hpp"
#include "graph.hpp"
#include "support/kernels_of.hpp"
#include "support/random.hpp"

// Kernels that begin while the one before them ends (programmatic dependent launch): each run of a chain reads what the
// one before it has just written, and writes what that one has just read, with nothing between them but their order.
namespace gatefold::test {
namespace {

struct Chain {
  const char* implementation;
  std::int64_t tokens;
  std::int64_t columns;
  std::int64_t ld;
};

void PrintTo(const Chain& c, std::ostream* out) { *out << c.implementation << " " << c.tokens << " x " << c.columns; }

std::string chain_name(const testing::TestParamInfo<Chain>& info) {
  const Chain& c = info.param;
  return std::string(c.implementation) + "_" + std::to_string(c.tokens) + "x" + std::to_string(c.columns) + "_ld" +
         std::to_string(c.ld);
}

// From one block to a few per multiprocessor, so that a chip has room for the next run's blocks beside this one's, and
// two sizes that fill it; one row of each tensor, and rows with padding.
std::vector<Chain> chains() {
  std::vector<Chain> all;
  for (const char* implementation : {"vectors", "simt"}) {
    for (const auto& [tokens, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1024},
                                          {3, 4100},
                                          {64, 4096},
                                          {130, 4096},
                                          {512, 4096},
                                          {4100, 8192}}) {
      for (const std::int64_t padding : {0, 8}) all.push_back({implementation, tokens, columns, columns + padding});
    }
  }
  return all;
}

class Chains : public testing::TestWithParam<Chain> {
 protected:
  static constexpr int runs = 60;

  Chains()
      : count_(static_cast<std::size_t>(GetParam().tokens * GetParam().ld)),
        first_(device_memory(), count_ * sizeof(float)),
        second_(device_memory(), count_ * sizeof(float)),
        twos_(device_memory(), count_ * sizeof(float)),
        plan_({.op = GATEFOLD_OP_ACT_AND_MUL,
               .dtype = GATEFOLD_DTYPE_FP32,
               .device = GATEFOLD_DEVICE_CUDA,
               .layout = Layout::separate(),
               .activation = Activation::identity(),
               .intermediate_size = GetParam().columns,
               .ld = {.gate = GetParam().ld, .up = GetParam().ld, .out = GetParam().ld},
               .implementation = GetParam().implementation}) {
    for (std::size_t i = 0; i < count_; ++i) start_.push_back(static_cast<float>(1 + i % 251));
    upload(first_, start_);
    upload(second_, std::vector<float>(count_, -1.0F));
    upload(twos_, std::vector<float>(count_, 2.0F));
  }

  // Each run doubles: from the first buffer into the second, from there back, and so on.
  void enqueue(cudaStream_t stream) const {
    for (int run = 0; run < runs; ++run) {
      plan_.run({.tokens = GetParam().tokens,
                 .gate = (run % 2 == 0 ? first_ : second_).get(),
                 .up = twos_.get(),
                 .out = (run % 2 == 0 ? second_ : first_).get(),
                 .stream = stream});
    }
  }

  // Every element has been doubled as often as there were runs, which is exact.
  void expect_result() const {
    std::vector<float> result(count_);
    device_memory().download(result.data(), first_.get(), count_ * sizeof(float));
    for (std::size_t i = 0; i < count_; ++i) {
      if (static_cast<std::int64_t>(i) % GetParam().ld >= GetParam().columns) continue;
      ASSERT_EQ(result[i], std::ldexp(start_[i], runs)) << "element " << i;
    }
  }

 private:
  void upload(Allocation& to, const std::vector<float>& from) const {
    device_memory().upload(to.get(), from.data(), count_ * sizeof(float));
  }

  std::size_t count_;
  Allocation first_, second_, twos_;
  Plan plan_;
  std::vector<float> start_;
};
INSTANTIATE_TEST_SUITE_P(All, Chains, testing::ValuesIn(chains()), chain_name);

TEST_P(Chains, KeepTheirOrder) {
  const Stream stream;
  enqueue(stream.get());
  stream.wait();
  expect_result();
}

TEST_P(Chains, KeepTheirOrderInAGraph) {
  const Stream stream;
  const Graph graph(stream.get(), [&] { enqueue(stream.get()); });
  graph.launch(stream.get());
  stream.wait();
  expect_result();
}

// The unfused way: products that let the next kernel begin long before they end, the element-wise kernel in place, and
// a product that reads its output.
class UnfusedChain : public testing::Test {
 protected:
  static constexpr std::int64_t tokens = 384;
  static constexpr std::int64_t hidden_size = 2048;
  static constexpr std::int64_t intermediate_size = 1024;

  static Plan product(std::int64_t from, std::int64_t to) {
    return Plan({.op = GATEFOLD_OP_GEMM,
                 .dtype = GATEFOLD_DTYPE_BF16,
                 .device = GATEFOLD_DEVICE_CUDA,
                 .hidden_size = from,
                 .intermediate_size = to});
  }
  static Plan product_of_halves() {
    return Plan({.op = GATEFOLD_OP_ACT_AND_MUL,
                 .dtype = GATEFOLD_DTYPE_BF16,
                 .device = GATEFOLD_DEVICE_CUDA,
                 .layout = Layout::separate(),
                 .activation = Activation::identity(),
                 .intermediate_size = intermediate_size});
  }

  // Values in {-1, 0, 1}, one in eight of them other than 0.
  static Allocation matrix(std::int64_t rows, std::int64_t columns, Random& random) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(rows * columns));
    for (std::uint16_t& value : values) {
      const std::uint64_t draw = random();
      value = draw % 8 != 0 ? 0 : (draw & 8) != 0 ? 0x3f80 : 0xbf80;
    }
    Allocation result(device_memory(), values.size() * sizeof values[0]);
    device_memory().upload(result.get(), values.data(), values.size() * sizeof values[0]);
    return result;
  }

  static constexpr std::size_t h_bytes = tokens * intermediate_size * 2;
  static constexpr std::size_t y_bytes = tokens * hidden_size * 2;

  // The matrices of one layer, and what its steps write.
  struct Layer {
    Random random = test_random();
    Allocation x = matrix(tokens, hidden_size, random);
    Allocation w_gate = matrix(intermediate_size, hidden_size, random);
    Allocation w_up = matrix(intermediate_size, hidden_size, random);
    Allocation w_down = matrix(hidden_size, intermediate_size, random);
    Allocation gate{device_memory(), h_bytes}, up{device_memory(), h_bytes}, y{device_memory(), y_bytes};
    Stream stream;

    // In the order of the stream alone, or waiting after each. The steps write up or h to `up`.
    void run(const std::vector<std::function<void()>>& steps, bool pauses) const {
      for (const auto& [tensor, bytes] : {std::pair{&gate, h_bytes}, {&up, h_bytes}, {&y, y_bytes}}) {
        require(cudaMemsetAsync(tensor->get(), 0xff, bytes, stream.get()), "cudaMemsetAsync");  // NaN
      }
      for (const auto& step : steps) {
        step();
        if (pauses) stream.wait();
      }
    }
    std::vector<std::uint16_t> result() const {
      stream.wait();
      std::vector<std::uint16_t> values(y_bytes / 2);
      device_memory().download(values.data(), y.get(), y_bytes);
      return values;
    }
    void expect_the_same_with_and_without_pauses(const std::vector<std::function<void()>>& steps) const {
      run(steps, true);
      const std::vector<std::uint16_t> expected = result();
      EXPECT_NE(expected, std::vector<std::uint16_t>(expected.size(), 0xffff));
      for (int repeat = 0; repeat < 20; ++repeat) {
        for (int i = 0; i < 5; ++i) run(steps, false);
        ASSERT_EQ(result(), expected) << "repeat " << repeat;
      }
    }
  };

  // Products on a layer's stream, in one workspace.
  class ProductsOf {
   public:
    ProductsOf(const Layer& layer, std::initializer_list<const Plan*> plans) : layer_(layer) {
      for (const Plan* plan : plans) bytes_ = std::max(bytes_, plan->workspace_size(tokens));
      memory_.emplace(device_memory(), bytes_);
    }
    void run(const Plan& plan, const Allocation& x, const Allocation& weight, const Allocation& out) const {
      plan.run({.tokens = tokens,
                .x = x.get(),
                .up = weight.get(),
                .out = out.get(),
                .workspace = {memory_->get(), bytes_},
                .stream = layer_.stream.get()});
    }

   private:
    const Layer& layer_;
    std::size_t bytes_ = 0;
    std::optional<Allocation> memory_;
  };
};

TEST_F(UnfusedChain, IsTheSameWithAndWithoutPauses) {
  const Layer l;
  const Plan in = product(hidden_size, intermediate_size);
  const Plan halves = product_of_halves();
  const Plan out = product(intermediate_size, hidden_size);
  void* stream = l.stream.get();
  const ProductsOf products(l, {&in, &out});
  l.expect_the_same_with_and_without_pauses({
      [&] { products.run(in, l.x, l.w_gate, l.gate); },
      [&] { products.run(in, l.x, l.w_up, l.up); },
      [&] {
        halves.run({.tokens = tokens, .gate = l.gate.get(), .up = l.up.get(), .out = l.gate.get(), .stream = stream});
      },
      [&] { products.run(out, l.gate, l.w_down, l.y); },
  });
}

// gemm_gated begins while the product before it still writes the gate values that it is to read.
TEST_F(UnfusedChain, OfAProductThatReadsTheGateIsTheSameWithAndWithoutPauses) {
  const Layer l;
  const Plan in = product(hidden_size, intermediate_size);
  const Plan out = product(intermediate_size, hidden_size);
  void* stream = l.stream.get();
  const ProductsOf products(l, {&in, &out});
  const Spec spec{.op = GATEFOLD_OP_GEMM_GATED,
                  .dtype = GATEFOLD_DTYPE_BF16,
                  .activation = Activation::identity(),
                  .tokens = tokens,
                  .hidden_size = hidden_size,
                  .intermediate_size = intermediate_size};
  Random random = test_random();
  const Experiment experiment(spec, random);
  for (const char* implementation : {"sm90", "sm80"}) {
    if (implementation == std::string("sm90") && !is_hopper()) continue;
    for (const std::string& kernel : kernels_of(spec, implementation)) {
      SCOPED_TRACE(kernel);
      const Plan gated(experiment.desc(kernel));
      l.expect_the_same_with_and_without_pauses({
          [&] { products.run(in, l.x, l.w_gate, l.gate); },
          [&] {
            gated.run({.tokens = tokens,
                       .x = l.x.get(),
                       .gate = l.gate.get(),
                       .up = l.w_up.get(),
                       .out = l.up.get(),
                       .stream = stream});
          },
          [&] { products.run(out, l.up, l.w_down, l.y); },
      });
    }
  }
}

}  // namespace
}  // namespace gatefold::test
