#include "cli/cublaslt_products.hpp"

#include <functional>

#include "cuda/cublaslt.hpp"

namespace gatefold::cli {
namespace {

const bench::CublasLt& library() {
  static const bench::CublasLt loaded;
  return loaded;
}

struct Operands {
  const std::byte* x;
  const std::byte* w;
  std::byte* out;
};

// out [tokens, rows] = x [tokens, length] . w [rows, length]^T, with rows of w ld_w apart
struct ProductShape {
  std::int64_t rows, length, ld_w;
};

class CublasLtStage final : public Stage {
 public:
  using Bind = std::function<Operands(const Tensors&)>;

  CublasLtStage(const Block& block, const ProductShape& shape, Leaves leaves, Bind bind)
      : bind_(std::move(bind)),
        work_(product_work(block, shape.rows, shape.length, leaves)),
        product_(library(), block.dtype, block.tokens, shape.rows, shape.length, shape.ld_w) {}

  std::string implementation() const override { return "cublaslt"; }
  Work work() const override { return work_; }

  void prepare(const Tensors& tensors, Backend& backend) const override {
    const Operands o = bind_(tensors);
    product_.tune(o.x, o.w, o.out, static_cast<cudaStream_t>(backend.stream()));
  }
  void enqueue(const Tensors& tensors, Backend& backend) const override {
    const Operands o = bind_(tensors);
    product_.run(o.x, o.w, o.out, static_cast<cudaStream_t>(backend.stream()));
  }

 private:
  Bind bind_;
  Work work_;
  mutable bench::CublasLtGemm product_;  // tuning finds the fastest algorithm; the product stays the same
};

StagePtr gate(const Block& block) {
  const std::int64_t rows = block.layout.packed() ? 2 * block.intermediate_size : block.intermediate_size;
  return std::make_shared<CublasLtStage>(block, ProductShape{rows, block.hidden_size, block.hidden_size},
                                         Leaves::between,
                                         [](const Tensors& t) { return Operands{t.x, t.w_gate, t.gate}; });
}

StagePtr up(const Block& block) {
  return std::make_shared<CublasLtStage>(block,
                                         ProductShape{block.intermediate_size, block.hidden_size, block.hidden_size},
                                         Leaves::between, [](const Tensors& t) { return Operands{t.x, t.w_up, t.up}; });
}

StagePtr half(const Block& block, bool up_half) {
  const ProductShape shape{block.intermediate_size, block.hidden_size, half_rows(block, up_half).ld};
  return std::make_shared<CublasLtStage>(block, shape, Leaves::between, [block, up_half](const Tensors& t) {
    return Operands{t.x, half_weights(block, t, up_half), up_half ? t.up : t.gate};
  });
}

StagePtr down(const Block& block) {
  return std::make_shared<CublasLtStage>(
      block, ProductShape{block.hidden_size, block.intermediate_size, block.intermediate_size}, Leaves::y,
      [](const Tensors& t) { return Operands{t.h, t.w_down, t.y}; });
}

}  // namespace

const ProductStages& cublaslt_products() {
  static const ProductStages stages{gate, up, half, down};
  return stages;
}

}  // namespace gatefold::cli
