#include <algorithm>
#include <array>

#include "cpu/dots.hpp"
#include "cpu/implementations.hpp"
#include "cpu/vector_math.hpp"

// gemm, gemm_gated and gate_up for a few tokens, as at decoding: each weight is needed for a handful of products, so
// that reading it is most of the work. A matrix product would write the weights again first, packed, and widened if
// they have 16 bits. Here they go from memory through the first-level cache to the sums, once.
//
//   for each block of up to 8 tokens                  (16-bit types: widened to fp32 once)
//     for each panel of 64 columns, shared out among threads
//       gate, up [tokens, 64] = x . w^T               4 rows of weights at a time, by chunks of 512 elements
//       out panel = act(gate) * up, rounded once
namespace gatefold::cpu {
namespace {

constexpr std::int64_t token_block = 8;
constexpr std::int64_t panel_width = 64;
// Of a row, at a time: of fp16, 8 KiB of four widened rows and 16 KiB of eight tokens stay in the first-level cache.
constexpr std::int64_t chunk = 512;
static_assert(chunk % pairs_group == 0);

// Measured in docs/kernels/cpu.md: from the next on a matrix product's better use of the registers outweighs its
// copies.
constexpr std::int64_t most_tokens = 7;

using PanelValues = std::array<float, token_block * panel_width>;
using BlockSums = std::array<DotSums, token_block>;

class VectorProductsExecutor final : public Executor {
 public:
  explicit VectorProductsExecutor(const Problem& problem) : p_(problem) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    if (p_.dtype == DType::fp32) return 0;
    return static_cast<std::size_t>(std::min(max_tokens, token_block) * p_.hidden_size) * sizeof(float);
  }

  Status run(const Operands& operands) const override {
    for (std::int64_t begin = 0; begin < operands.tokens; begin += token_block) {
      run_block(operands, begin, std::min(token_block, operands.tokens - begin));
    }
    return {};
  }

 private:
  // Tokens [begin, begin + tokens), their x in fp32, and columns [column, column + columns) of the output.
  struct Panel {
    const Operands& operands;
    const float* x;
    std::int64_t ld_x;
    std::int64_t begin;
    std::int64_t tokens;
    std::int64_t column;
    std::int64_t columns;
  };

  std::int64_t element() const { return size_of(p_.dtype); }

  void run_block(const Operands& operands, std::int64_t begin, std::int64_t tokens) const {
    const std::int64_t panels = (p_.intermediate_size + panel_width - 1) / panel_width;
    const bool in_place = p_.dtype == DType::fp32;
    const std::byte* stored = operands.x + begin * p_.ld_x * element();
    auto* widened = reinterpret_cast<float*>(operands.workspace);
    const float* x = in_place ? reinterpret_cast<const float*>(stored) : widened;
    const std::int64_t ld_x = in_place ? p_.ld_x : p_.hidden_size;
#pragma omp parallel
    {
      if (!in_place) {
#pragma omp for schedule(static)
        for (std::int64_t t = 0; t < tokens; ++t) {
          float* row = widened + t * p_.hidden_size;
          widen(stored + t * p_.ld_x * element(), p_.dtype, p_.hidden_size, row);
          if (p_.dtype == DType::bf16) split_pairs(row, p_.hidden_size);
        }
      }
#pragma omp for schedule(dynamic)
      for (std::int64_t i = 0; i < panels; ++i) {
        const std::int64_t column = i * panel_width;
        run_panel({operands, x, ld_x, begin, tokens, column, std::min(panel_width, p_.intermediate_size - column)});
      }
    }
  }

  void run_panel(const Panel& panel) const {
    PanelValues activated;
    PanelValues result;
    if (p_.op == Op::gate_up) multiply_panel(panel, Half::gate, activated);
    if (p_.op == Op::gemm_gated) load_gate(panel, activated);
    multiply_panel(panel, Half::up, result);
    for (std::int64_t t = 0; t < panel.tokens; ++t) {
      float* gate = activated.data() + t * panel_width;
      float* value = result.data() + t * panel_width;
      if (p_.op != Op::gemm) {
        activate(p_.activation, gate, panel.columns, gate);
        multiply(p_.activation, gate, value, panel.columns, value);
      }
      narrow(value, p_.dtype, panel.columns,
             panel.operands.out + ((panel.begin + t) * p_.ld_out + panel.column) * element());
    }
  }

  void load_gate(const Panel& panel, PanelValues& gate) const {
    for (std::int64_t t = 0; t < panel.tokens; ++t) {
      widen(panel.operands.gate + ((panel.begin + t) * p_.ld_gate + panel.column) * element(), p_.dtype, panel.columns,
            gate.data() + t * panel_width);
    }
  }

  // values [tokens, columns] = x . one half's rows^T
  void multiply_panel(const Panel& panel, Half half, PanelValues& values) const {
    const HalfView view = half_view(p_, panel.operands, half);
    for (std::int64_t j = 0; j < panel.columns; j += dot_rows) {
      const std::int64_t rows = std::min<std::int64_t>(dot_rows, panel.columns - j);
      WeightRows<std::byte> weights{};
      for (int i = 0; i < dot_rows; ++i) {
        const std::int64_t row = panel.column + j + std::min<std::int64_t>(i, rows - 1);  // past the end, the last
        weights[i] = view.base + view.map(row) * view.ld * element();
      }
      const BlockSums sums = multiply_rows(panel, weights);
      for (std::int64_t t = 0; t < panel.tokens; ++t) {
        std::copy_n(sums[t].data(), rows, values.data() + t * panel_width + j);
      }
    }
  }

  BlockSums multiply_rows(const Panel& panel, const WeightRows<std::byte>& weights) const {
    BlockSums sums{};
    for (std::int64_t begin = 0; begin < p_.hidden_size; begin += chunk) {
      const std::int64_t count = std::min(chunk, p_.hidden_size - begin);
      const auto add = [&](const auto& rows) {
        add_dots(rows, panel.x + begin, panel.ld_x, panel.tokens, count, sums.data());
      };
      switch (p_.dtype) {
        case DType::fp32: add(rows_at<float>(weights, begin)); break;
        case DType::bf16: add(rows_at<Bf16>(weights, begin)); break;
        case DType::fp16: {
          std::array<std::array<float, chunk>, dot_rows> widened;
          for (int i = 0; i < dot_rows; ++i) widen(weights[i] + begin * element(), p_.dtype, count, widened[i].data());
          add(WeightRows<float>{widened[0].data(), widened[1].data(), widened[2].data(), widened[3].data()});
          break;
        }
      }
    }
    return sums;
  }

  template <class Weight>
  static WeightRows<Weight> rows_at(const WeightRows<std::byte>& rows, std::int64_t begin) {
    WeightRows<Weight> result{};
    for (int i = 0; i < dot_rows; ++i) result[i] = reinterpret_cast<const Weight*>(rows[i]) + begin;
    return result;
  }

  Problem p_;
};

class VectorProducts final : public Implementation {
 public:
  std::string_view name() const override { return "vector"; }

  Verdict supports(const Problem& problem) const override {
    if (problem.hidden_size == 0) return {false, "needs D > 0"};  // rows of nothing may be null
    return {.eligible = true, .reason = "weights straight from memory, for few tokens", .max_tokens = most_tokens};
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<VectorProductsExecutor>(problem);
  }
};

const VectorProducts implementation;

}  // namespace

const Implementation* vector_products() { return &implementation; }

}  // namespace gatefold::cpu
