#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cuda_support.hpp"
#include "graph.hpp"
#include "ops/targets.hpp"
#include "support/values.hpp"

// Tensors of more than 2^31 elements: every index and byte offset must be 64 bits wide. Windows of the result are held
// against the truth: the first and last rows, and those where an index or an offset of 32 bits would wrap. And products
// of so many tiles that a kernel may be launched several times.
namespace gatefold::test {
namespace {

constexpr gatefold_dtype dtype = GATEFOLD_DTYPE_BF16;
constexpr std::int64_t element_bytes = 2;

auto normal_draw(Random& random) {
  return [&random, normal = std::normal_distribution<double>()]() mutable { return round_to(dtype, normal(random)); };
}

// A large matrix whose elements repeat a random block: of a prime length, so that an offset that wraps at a power of
// two meets other values, or of another.
class LargeMatrix {
 public:
  static constexpr std::int64_t prime_period = 16777213;

  LargeMatrix(std::int64_t elements, Random& random) : LargeMatrix(elements, prime_period, normal_draw(random)) {}

  template <class Draw>
  LargeMatrix(std::int64_t elements, std::int64_t period, Draw draw)
      : period_(period),
        block_(static_cast<std::size_t>(period) * element_bytes),
        data_(device_memory(), static_cast<std::size_t>(elements * element_bytes)) {
    for (std::int64_t i = 0; i < period; ++i) encode(dtype, draw(), block_.data() + i * element_bytes);
    device_memory().upload(data_.get(), block_.data(),
                           static_cast<std::size_t>(std::min(period, elements)) * element_bytes);
    for (std::int64_t filled = period; filled < elements; filled *= 2) {
      const std::int64_t more = std::min(filled, elements - filled);
      require(cudaMemcpy(data_.get() + filled * element_bytes, data_.get(),
                         static_cast<std::size_t>(more * element_bytes), cudaMemcpyDeviceToDevice),
              "cudaMemcpy");
    }
  }

  void* get() const { return data_.get(); }
  std::vector<std::byte> window(std::int64_t first, std::int64_t elements) const {
    std::vector<std::byte> copy(static_cast<std::size_t>(elements * element_bytes));
    for (std::int64_t i = 0; i < elements; ++i) {
      std::copy_n(block_.data() + (first + i) % period_ * element_bytes, element_bytes,
                  copy.data() + i * element_bytes);
    }
    return copy;
  }

 private:
  std::int64_t period_;
  std::vector<std::byte> block_;
  Allocation data_;
};

// Rows of a [rows, length] matrix with `ld` between rows, around each place where something could wrap.
std::vector<std::int64_t> telling_rows(std::int64_t rows, std::int64_t ld) {
  std::vector<std::int64_t> result{0, rows - 1};
  for (const std::int64_t wrap : {std::int64_t{1} << 30, std::int64_t{1} << 31, std::int64_t{1} << 32}) {
    for (const std::int64_t row : {wrap / ld - 1, wrap / ld, wrap / ld + 1}) {
      if (row >= 0 && row < rows) result.push_back(row);
    }
  }
  return result;
}

std::vector<std::string> implementations_of(gatefold_op op) {
  std::vector<std::string> names;
  for (int i = 0; const char* name = gatefold_implementation_name(op, GATEFOLD_DEVICE_CUDA, i); ++i) {
    names.emplace_back(name);
  }
  return names;
}

// A plan, or none where the implementation doesn't take the description.
std::optional<Plan> plan_for(const Desc& desc) {
  try {
    return Plan(desc);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GATEFOLD_ERROR_UNSUPPORTED) << error.what();
    return std::nullopt;
  }
}

bool enough_memory(double gigabytes) {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  require(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  return static_cast<double>(free_bytes) > gigabytes * 1e9;
}

std::vector<std::byte> device_row(const Allocation& matrix, std::int64_t row, std::int64_t ld, std::int64_t length) {
  std::vector<std::byte> copy(static_cast<std::size_t>(length * element_bytes));
  device_memory().download(copy.data(), matrix.get() + row * ld * element_bytes, copy.size());
  return copy;
}

struct ElementWiseCase {
  const char* name;
  Layout layout;
  std::int64_t tokens, columns, padding;
};

void check_element_wise(const ElementWiseCase& c, const std::string& implementation, Random& random) {
  SCOPED_TRACE(std::string(c.name) + " by " + implementation);
  const std::int64_t lines = c.layout.packed() ? 2 * c.columns : c.columns;
  const std::int64_t ld_in = lines + c.padding;
  const std::int64_t ld_out = c.columns + c.padding;
  const LargeMatrix gate(c.tokens * ld_in, random);
  const LargeMatrix up(c.layout.packed() ? LargeMatrix::prime_period : c.tokens * ld_in, random);
  const Allocation out(device_memory(), static_cast<std::size_t>(c.tokens * ld_out * element_bytes));
  require(cudaMemset(out.get(), 0xff, static_cast<std::size_t>(c.tokens * ld_out * element_bytes)), "cudaMemset");

  Desc desc{.op = GATEFOLD_OP_ACT_AND_MUL, .dtype = dtype, .device = GATEFOLD_DEVICE_CUDA};
  desc.layout = c.layout;
  desc.activation = Activation::silu();
  desc.intermediate_size = c.columns;
  desc.ld = {.gate = ld_in, .up = c.layout.packed() ? 0 : ld_in, .out = ld_out};
  desc.implementation = implementation;
  const std::optional<Plan> plan = plan_for(desc);
  if (!plan) return;
  plan->run({.tokens = c.tokens, .gate = gate.get(), .up = c.layout.packed() ? nullptr : up.get(), .out = out.get()});

  for (const std::int64_t row : telling_rows(c.tokens, ld_in)) {
    std::vector<std::byte> gate_row = gate.window(row * ld_in, lines);
    std::vector<std::byte> up_row = up.window(row * ld_in, c.layout.packed() ? 1 : lines);
    std::vector<std::byte> out_row = device_row(out, row, ld_out, c.columns);
    Desc one = desc;
    one.implementation.clear();
    const gatefold_error_report report = check(one,
                                               {.tokens = 1,
                                                .gate = gate_row.data(),
                                                .up = c.layout.packed() ? nullptr : up_row.data(),
                                                .out = out_row.data()},
                                               GATEFOLD_DATA_ANY);
    EXPECT_EQ(report.violations, 0) << "row " << row << " column " << report.worst_column;
  }
}

TEST(Large, ElementWise) {
  if (!enough_memory(30)) GTEST_SKIP() << "less than 30 GB of device memory are free";
  Random random = test_random();
  const ElementWiseCase cases[] = {
      {"one long row", Layout::separate(), 131077, 16384, 0},
      {"padded rows", Layout::separate(), 131077, 16384, 8},
      {"packed halves", Layout::gate_up(), 65539, 16384, 0},
      {"one by one", Layout::interleaved_up_gate(1), 65539, 16384, 0},
      {"few columns, many rows", Layout::separate(), 268435463, 8, 0},
  };
  for (const ElementWiseCase& c : cases) {
    for (const std::string& implementation : implementations_of(GATEFOLD_OP_ACT_AND_MUL)) {
      check_element_wise(c, implementation, random);
    }
  }
}

// A large product on the device: gemm, or gate_up of packed halves.
class LargeProduct {
 public:
  template <class Draw>
  LargeProduct(std::int64_t tokens, std::int64_t hidden_size, std::int64_t intermediate_size, std::int64_t x_period,
               Draw draw)
      : T_(tokens),
        D_(hidden_size),
        F_(intermediate_size),
        x_(T_ * D_, x_period, draw),
        weights_(2 * F_ * D_, LargeMatrix::prime_period, draw),
        out_(device_memory(), static_cast<std::size_t>(T_ * F_ * element_bytes)),
        weight_rows_(weights_.window(0, 2 * F_ * D_)) {}

  enum class By { call, graph };

  // Into a poisoned output; false where the implementation doesn't take the product.
  bool run(gatefold_op op, const Activation& activation, const std::string& implementation, By by = By::call) {
    desc_ = {.op = op, .dtype = dtype, .device = GATEFOLD_DEVICE_CUDA};
    if (gated()) {
      desc_.layout = Layout::gate_up();
      desc_.activation = activation;
    }
    desc_.hidden_size = D_;
    desc_.intermediate_size = F_;
    desc_.implementation = implementation;
    require(cudaMemset(out_.get(), 0xff, static_cast<std::size_t>(T_ * F_ * element_bytes)), "cudaMemset");
    const std::optional<Plan> plan = plan_for(desc_);
    if (!plan) return false;
    Args operands = args(T_, x_.get(), weights_.get(), out_.get());
    if (by == By::call) {
      plan->run(operands);
    } else {
      const Stream stream;
      operands.stream = stream.get();
      require(cudaDeviceSynchronize(), "poisoning the output");
      const Graph graph(stream.get(), [&] { plan->run(operands); });
      graph.launch(stream.get());
      stream.wait();
    }
    return true;
  }

  const Allocation& out() const { return out_; }

  // The output's row `row`, which is at `out_row` of the host, against the truth.
  void expect_right(std::int64_t row, std::byte* out_row) const {
    const std::vector<std::byte> x_row = x_.window(row * D_, D_);
    Desc one = desc_;
    one.implementation.clear();
    const gatefold_error_report report =
        check(one, args(1, x_row.data(), weight_rows_.data(), out_row), GATEFOLD_DATA_ZERO_MEAN);
    EXPECT_EQ(report.violations, 0) << "row " << row << " column " << report.worst_column;
  }

 private:
  bool gated() const { return desc_.op == GATEFOLD_OP_GATE_UP; }
  Args args(std::int64_t tokens, const void* x, const void* weights, void* out) const {
    return {
        .tokens = tokens, .x = x, .gate = gated() ? weights : nullptr, .up = gated() ? nullptr : weights, .out = out};
  }

  std::int64_t T_, D_, F_;
  LargeMatrix x_, weights_;
  Allocation out_;
  std::vector<std::byte> weight_rows_;
  Desc desc_;
};

// More than 2^31 outputs from few inputs.
TEST(Large, ProductOutputs) {
  if (!enough_memory(8)) GTEST_SKIP() << "less than 8 GB of device memory are free";
  Random random = test_random();
  constexpr std::int64_t T = 65543;
  constexpr std::int64_t F = 32784;
  LargeProduct product(T, 16, F, LargeMatrix::prime_period, normal_draw(random));
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GATE_UP}) {
    for (const std::string& implementation : implementations_of(op)) {
      SCOPED_TRACE(name(op) + " by " + implementation);
      if (!product.run(op, Activation::silu(), implementation)) continue;
      for (const std::int64_t row : telling_rows(T, F)) {
        product.expect_right(row, device_row(product.out(), row, F, F).data());
      }
    }
  }
}

// Integers, whose sums are exact in any order, and tokens that come again every 257 rows: so must the rows of the
// output, wherever a launch, a round or a tile ends.
TEST(Large, ProductRounds) {
  if (!enough_memory(2)) GTEST_SKIP() << "less than 2 GB of device memory are free";
  Random random = test_random();
  constexpr std::int64_t T = 8492;
  constexpr std::int64_t F = 20008;
  constexpr std::int64_t D = 4096;
  constexpr std::int64_t tokens_period = 257;
  LargeProduct product(T, D, F, tokens_period * D, [&] { return static_cast<double>(random() % 5) - 2.0; });
  std::vector<std::byte> rows(static_cast<std::size_t>(T * F * element_bytes));
  const auto row_at = [&](std::int64_t row) { return rows.data() + row * F * element_bytes; };
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GATE_UP}) {
    for (const std::string& implementation : implementations_of(op)) {
      SCOPED_TRACE(name(op) + " by " + implementation);
      if (!product.run(op, Activation::relu(), implementation)) continue;
      device_memory().download(rows.data(), product.out().get(), rows.size());
      for (const std::int64_t row : {std::int64_t{0}, tokens_period - 1}) product.expect_right(row, row_at(row));
      std::int64_t untouched = 0;  // elements of the first tokens
      for (std::int64_t i = 0; i < tokens_period * F; ++i) {
        untouched += rows[2 * i] == std::byte{0xff} && rows[2 * i + 1] == std::byte{0xff};
      }
      EXPECT_EQ(untouched, 0);
      std::int64_t different = 0;  // from the row of the same token before
      for (std::int64_t row = tokens_period; row < T; ++row) {
        different += std::memcmp(row_at(row), row_at(row - tokens_period), F * element_bytes) != 0;
      }
      EXPECT_EQ(different, 0);
      if (op != GATEFOLD_OP_GATE_UP) continue;
      product.run(op, Activation::relu(), implementation, LargeProduct::By::graph);
      std::vector<std::byte> captured(rows.size());
      device_memory().download(captured.data(), product.out().get(), captured.size());
      EXPECT_EQ(std::memcmp(captured.data(), rows.data(), rows.size()), 0) << "a capture of all the launches";
    }
  }
}

}  // namespace
}  // namespace gatefold::test
