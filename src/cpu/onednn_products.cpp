#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cpu/cpu_info.hpp"
#include "cpu/implementations.hpp"
#include "cpu/onednn_matmul.hpp"
#include "cpu/onednn_panels.hpp"
#include "cpu/threads.hpp"
#include "cpu/vector_math.hpp"

// gemm, gemm_gated and gate_up on oneDNN. Panel by panel, act(gate) of one panel stays in the cache until the up
// product's post-op multiplies by it: no pass over gate and up, and neither is ever rounded to 16 bits.
namespace gatefold::cpu {
namespace {

// One product, prepared for row counts 1, 2, 4 ... row_block, and for whole panels and the last, narrower one.
class Product {
 public:
  Product() = default;
  Product(const Problem& problem, const Panels& panels, Epilogue epilogue, std::int64_t ld_weights, bool to_output) {
    MatmulShape shape;
    shape.depth = panels.depth;
    shape.ld_x = panels.widened ? panels.depth : problem.ld_x;
    shape.ld_weights = panels.copies_weights() ? panels.depth : ld_weights;
    shape.in = panels.compute;
    shape.out = to_output ? problem.dtype : DType::fp32;
    for (const std::int64_t columns : {panels.width, problem.intermediate_size % panels.width}) {
      std::vector<Matmul>& list = columns == panels.width ? whole_ : last_;
      if (columns == 0) continue;
      for (shape.rows = 1; shape.rows <= panels.row_block; shape.rows *= 2) {
        shape.columns = columns;
        shape.ld_out = to_output ? problem.ld_out : columns;
        list.emplace_back(shape, epilogue, problem.activation);
        scratchpad_ = std::max(scratchpad_, list.back().scratchpad_size());
        better_widened_ |= list.back().better_widened();
      }
    }
  }

  // rows: a power of two.
  const Matmul& matmul(std::int64_t rows, bool whole_panel) const {
    return (whole_panel ? whole_ : last_)[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(rows)))];
  }
  std::size_t scratchpad_size() const { return scratchpad_; }
  const std::string& kernel() const { return whole_.back().kernel(); }
  bool better_widened() const { return better_widened_; }

 private:
  std::vector<Matmul> whole_;
  std::vector<Matmul> last_;
  std::size_t scratchpad_ = 0;
  bool better_widened_ = false;
};

class ProductsExecutor final : public Executor {
 public:
  ProductsExecutor(const Problem& problem, bool native)
      : p_(problem),
        activates_(can_activate(problem.activation.kind)),
        multiplies_(problem.op != Op::gemm && can_multiply(problem.activation.kind)),
        panels_(make_panels(problem, native, thread_limit())) {
    const SingleThreaded single;  // a kernel is made for the threads that it will have
    up_ = Product(p_, panels_, multiplies_ ? Epilogue::multiply : Epilogue::none, ld_weights(Half::up), panels_.direct);
    if (p_.op == Op::gate_up) {
      gate_ = Product(p_, panels_, activates_ ? Epilogue::activate : Epilogue::none, ld_weights(Half::gate), false);
    }
  }

  bool better_widened() const { return up_.better_widened() || gate_.better_widened(); }

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return workspace(max_tokens).size(panels_.threads);
  }

  std::string describe(std::int64_t /*tokens*/) const override {
    return concat("oneDNN ", up_.kernel(), " on ", to_string(panels_.compute), ", panels of ", panels_.width,
                  " weight rows",
                  panels_.widened    ? " widened"
                  : panels_.gathered ? " gathered"
                                     : " in place",
                  ", ", panels_.row_block, " rows of x at a time, ", panels_.threads, " threads");
  }

  Status run(const Operands& operands) const override {
    const std::int64_t blocks = (operands.tokens + panels_.row_block - 1) / panels_.row_block;
    const std::int64_t rows = blocks == 0 ? 0 : (operands.tokens + blocks - 1) / blocks;  // blocks of about one size
    for (std::int64_t begin = 0; begin < operands.tokens; begin += rows) {
      const RowBlock block{begin, std::min(rows, operands.tokens - begin), workspace(rows)};
      if (!run_block(operands, block)) {
        return {GATEFOLD_ERROR_OUT_OF_MEMORY, concat("oneDNN ", up_.kernel(), ": a product of ", block.rows, " x ",
                                                     panels_.width, " x ", panels_.depth, " failed")};
      }
    }
    return {};
  }

 private:
  struct RowBlock {
    std::int64_t begin = 0;
    std::int64_t rows = 0;
    PanelWorkspace workspace;
  };

  // What one thread works on: columns [column, column + columns) of a row block's output.
  struct Panel {
    const Operands& operands;
    const RowBlock& block;
    std::byte* memory;  // this thread's part of the workspace
    std::int64_t column;
    std::int64_t columns;

    std::byte* weights() const { return memory; }
    float* activated() const { return reinterpret_cast<float*>(memory + block.workspace.activated); }
    float* result() const { return reinterpret_cast<float*>(memory + block.workspace.result); }
    std::byte* scratchpad() const { return memory + block.workspace.scratchpad; }
  };

  std::int64_t element() const { return size_of(p_.dtype); }

  // In place, consecutive rows of a half are one row of the tensor apart, or two where halves alternate.
  std::int64_t ld_weights(Half half) const {
    const HalfView view = half_view(p_, {}, half);
    return view.map.block == 1 ? view.map.period * view.ld : view.ld;
  }

  PanelWorkspace workspace(std::int64_t rows) const {
    return make_workspace(panels_, rows, std::max(gate_.scratchpad_size(), up_.scratchpad_size()));
  }

  bool run_block(const Operands& operands, const RowBlock& block) const {
    const std::int64_t panel_count = (p_.intermediate_size + panels_.width - 1) / panels_.width;
    std::atomic<bool> good = true;
#pragma omp parallel num_threads(panels_.threads)
    {
      const SingleThreaded single;
      std::byte* memory = operands.workspace + block.workspace.threads +
                          static_cast<std::size_t>(this_thread()) * block.workspace.per_thread;
      if (panels_.widened) {
#pragma omp for schedule(static)
        for (std::int64_t i = 0; i < block.rows; ++i) {
          widen(operands.x + (block.begin + i) * p_.ld_x * element(), p_.dtype, panels_.depth,
                reinterpret_cast<float*>(operands.workspace) + i * panels_.depth);
        }
      }
#pragma omp for schedule(dynamic)
      for (std::int64_t index = 0; index < panel_count; ++index) {
        const std::int64_t column = index * panels_.width;
        const Panel panel{operands, block, memory, column, std::min(panels_.width, p_.intermediate_size - column)};
        if (!run_panel(panel)) good = false;
      }
    }
    return good;
  }

  bool run_panel(const Panel& panel) const {
    if (p_.op == Op::gemm_gated) activate_stored_gate(panel);
    if (p_.op == Op::gate_up && !activate_gate(panel)) return false;
    if (panels_.direct) {
      std::byte* out = panel.operands.out + (panel.block.begin * p_.ld_out + panel.column) * element();
      return multiply_all(panel, up_, Half::up, out, p_.ld_out * element());
    }
    if (!multiply_all(panel, up_, Half::up, reinterpret_cast<std::byte*>(panel.result()), panel.columns * 4)) {
      return false;
    }
    store_result(panel);
    return true;
  }

  bool activate_gate(const Panel& panel) const {
    auto* gate = reinterpret_cast<std::byte*>(panel.activated());
    if (!multiply_all(panel, gate_, Half::gate, gate, panel.columns * 4)) return false;
    if (activates_) return true;
    activate(p_.activation, panel.activated(), panel.block.rows * panel.columns, panel.activated());
    return true;
  }

  void activate_stored_gate(const Panel& panel) const {
    for_each_row(panel, [&](float* activated, float* /*result*/, std::int64_t row) {
      widen(panel.operands.gate + (row * p_.ld_gate + panel.column) * element(), p_.dtype, panel.columns, activated);
      activate(p_.activation, activated, panel.columns, activated);
    });
  }

  void store_result(const Panel& panel) const {
    for_each_row(panel, [&](const float* activated, float* result, std::int64_t row) {
      if (panels_.has_gate && !multiplies_) multiply(p_.activation, activated, result, panel.columns, result);
      narrow(result, p_.dtype, panel.columns, panel.operands.out + (row * p_.ld_out + panel.column) * element());
    });
  }

  template <class Function>
  void for_each_row(const Panel& panel, Function function) const {
    for (std::int64_t i = 0; i < panel.block.rows; ++i) {
      function(panel.activated() + i * panel.columns, panel.result() + i * panel.columns, panel.block.begin + i);
    }
  }

  // All rows of the block with one panel of weights, into `out`, whose rows are `stride` bytes apart.
  bool multiply_all(const Panel& panel, const Product& product, Half half, std::byte* out, std::int64_t stride) const {
    const std::byte* weights = weights_of(panel, half);
    const std::byte* x =
        panels_.widened ? panel.operands.workspace : panel.operands.x + panel.block.begin * p_.ld_x * element();
    const std::int64_t x_stride = (panels_.widened ? panels_.depth : p_.ld_x) * size_of(panels_.compute);
    return cover_rows(panel.block.rows, [&](std::int64_t begin, std::int64_t rows) {
      // Without a workspace there is no gate to multiply by, and a null pointer has no offsets.
      float* activated = panel.memory == nullptr ? nullptr : panel.activated() + begin * panel.columns;
      return product.matmul(rows, panel.columns == panels_.width)
          .run({x + begin * x_stride, weights, activated, out + begin * stride, panel.scratchpad()});
    });
  }

  // A panel of one half's rows: where they are, or copied (and widened) to the workspace.
  const std::byte* weights_of(const Panel& panel, Half half) const {
    const HalfView view = half_view(p_, panel.operands, half);
    const auto row = [&](std::int64_t j) { return view.base + view.map(panel.column + j) * view.ld * element(); };
    if (!panels_.copies_weights()) return row(0);
    const std::int64_t copied_bytes = panels_.depth * size_of(panels_.compute);
    for (std::int64_t j = 0; j < panel.columns; ++j) {
      std::byte* copy = panel.weights() + j * copied_bytes;
      if (panels_.widened) {
        widen(row(j), p_.dtype, panels_.depth, reinterpret_cast<float*>(copy));
      } else {
        std::memcpy(copy, row(j), static_cast<std::size_t>(copied_bytes));
      }
    }
    return panel.weights();
  }

  Problem p_;
  bool activates_;   // oneDNN's post-op does it; else vector_math does, on the panel
  bool multiplies_;  // the same
  Panels panels_;
  Product gate_;  // gate_up only
  Product up_;
};

// What makes a row too long for oneDNN, or an empty reason. (ld_out >= F, so F is looked at too.)
std::string too_long(const Problem& p) {
  for (const auto& [name, elements] :
       {std::pair{"hidden_size", p.hidden_size}, std::pair{"ld_x", p.ld_x}, std::pair{"ld_gate", p.ld_gate},
        std::pair{"ld_up", p.ld_up}, std::pair{"ld_out", p.ld_out}}) {
    if (elements > longest_row) return concat(name, " ", elements, " > ", longest_row, ", the most that oneDNN counts");
  }
  return {};
}

class Products final : public Implementation {
 public:
  std::string_view name() const override { return "onednn"; }

  Verdict supports(const Problem& problem) const override {
    if (problem.hidden_size == 0 || problem.intermediate_size == 0) return {false, "needs D > 0 and F > 0"};
    if (std::string reason = too_long(problem); !reason.empty()) return {false, std::move(reason)};
    return {true, problem.op == Op::gemm ? "one product, panel by panel"
                                         : "activation and product are part of the matrix product, panel by panel"};
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    if (problem.dtype == DType::bf16 && features().avx512_bf16) {
      if (auto executor = prepare_native(problem)) return executor;
    }
    return std::make_unique<ProductsExecutor>(problem, problem.dtype == DType::fp32);
  }

 private:
  // Null where this oneDNN can't multiply the stored type, or is better not asked to.
  static std::unique_ptr<Executor> prepare_native(const Problem& problem) {
    try {
      auto executor = std::make_unique<ProductsExecutor>(problem, true);
      if (!executor->better_widened()) return executor;
    } catch (const dnnl::error&) {
      return nullptr;
    }
    return nullptr;
  }
};

const Products implementation;

}  // namespace

const Implementation* onednn_products() { return &implementation; }

}  // namespace gatefold::cpu
