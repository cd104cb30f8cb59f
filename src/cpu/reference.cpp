#include "core/float16.hpp"
#include "cpu/implementations.hpp"
#include "cpu/threads.hpp"
#include "cpu/truth.hpp"

// Each op in double precision, rounded once at the end. The truth that tests use, and the last entry of every list: it
// takes any description, slowly.
namespace gatefold::cpu {
namespace {

class ReferenceExecutor final : public Executor {
 public:
  explicit ReferenceExecutor(const Problem& problem) : problem_(problem) {}

  std::size_t workspace_size(std::int64_t /*max_tokens*/) const override { return 0; }

  Status run(const Operands& operands) const override {
    const Problem& p = problem_;
    const std::int64_t tiles = tile_count(operands.tokens, p.intermediate_size);
    share_out_dynamically(tiles, thread_limit(), [&](std::int64_t index) {
      const TileRange range = tile_range(operands.tokens, p.intermediate_size, index);
      const Tile tile = truth(p, operands, range);
      for (int i = 0; i < range.rows; ++i) {
        for (int j = 0; j < range.columns; ++j) {
          store(operands.out, p.types.out, (range.row + i) * p.ld_out + range.column + j, tile.entries[i][j].value);
        }
      }
    });
    return {};
  }

 private:
  Problem problem_;
};

// h stays in double precision, in the workspace.
class ReferenceMlpExecutor final : public Executor {
 public:
  explicit ReferenceMlpExecutor(const Problem& problem) : problem_(problem) {}

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return static_cast<std::size_t>(max_tokens * problem_.intermediate_size) * sizeof(double);
  }

  Status run(const Operands& operands) const override {
    auto* h = reinterpret_cast<double*>(operands.workspace);  // [T, F]
    first_half(operands, h);
    second_half(operands, h);
    return {};
  }

 private:
  void first_half(const Operands& operands, double* h) const {
    const std::int64_t F = problem_.intermediate_size;
    const std::int64_t tiles = tile_count(operands.tokens, F);
    share_out_dynamically(tiles, thread_limit(), [&](std::int64_t index) {
      const TileRange range = tile_range(operands.tokens, F, index);
      const Tile tile = truth(problem_, operands, range);
      for (int i = 0; i < range.rows; ++i) {
        for (int j = 0; j < range.columns; ++j) {
          h[(range.row + i) * F + range.column + j] = tile.entries[i][j].value;
        }
      }
    });
  }

  void second_half(const Operands& operands, const double* h) const {
    const Problem& p = problem_;
    const std::int64_t F = p.intermediate_size;
    const std::int64_t tiles = tile_count(operands.tokens, p.hidden_size);
    share_out_dynamically(tiles, thread_limit(), [&](std::int64_t index) {
      const TileRange range = tile_range(operands.tokens, p.hidden_size, index);
      RowSet h_rows{.count = range.rows, .element = Element::fp64};
      RowSet down_rows{.count = range.columns, .element = element_of(p.types.weights)};
      for (int i = 0; i < range.rows; ++i) {
        h_rows.rows[i] = reinterpret_cast<const std::byte*>(h + (range.row + i) * F);
      }
      for (int j = 0; j < range.columns && F > 0; ++j) {  // an empty sum has no rows to point at
        down_rows.rows[j] = operands.down + (range.column + j) * p.ld_down * size_of(p.types.weights);
      }
      const Products products = multiply(h_rows, down_rows, F);
      const auto bias = [&](std::int64_t column) {
        return operands.down_bias == nullptr ? 0.0 : load(operands.down_bias, p.types.weights, column);
      };
      for (int i = 0; i < range.rows; ++i) {
        for (int j = 0; j < range.columns; ++j) {
          store(operands.out, p.types.out, (range.row + i) * p.ld_out + range.column + j,
                products.sum[i][j] + bias(range.column + j));
        }
      }
    });
  }

  Problem problem_;
};

template <class ExecutorType>
class Reference final : public Implementation {
 public:
  std::string_view name() const override { return "reference"; }
  bool batch_invariant() const override { return true; }
  Verdict supports(const Problem& /*problem*/) const override {
    return {true, "double precision; takes everything, slowly"};
  }
  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<ExecutorType>(problem);
  }
};

const Reference<ReferenceExecutor> reference_of_one;
const Reference<ReferenceMlpExecutor> reference_of_mlp;

}  // namespace

const Implementation* reference() { return &reference_of_one; }
const Implementation* reference_mlp() { return &reference_of_mlp; }

}  // namespace gatefold::cpu
