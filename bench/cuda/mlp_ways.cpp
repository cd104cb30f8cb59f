#include "mlp_ways.hpp"

#include <algorithm>
#include <cstdlib>

namespace gatefold::bench {
namespace {

std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(2 * elements); }

Plan mlp_of(const Model& m, const std::string& implementation) {
  Desc desc = desc_of(GATEFOLD_OP_MLP, m.hidden_size, m.intermediate_size);
  desc.batch_invariant = implementation == batch_invariant;
  if (implementation.empty() || desc.batch_invariant) return Plan(desc);
  std::string names = implementation;
  std::ranges::replace(names, '+', ',');
  // NOLINTBEGIN(concurrency-mt-unsafe)
  setenv("GATEFOLD_IMPL", names.c_str(), 1);
  Plan plan(desc);
  unsetenv("GATEFOLD_IMPL");
  // NOLINTEND(concurrency-mt-unsafe)
  return plan;
}

}  // namespace

Tensors::Tensors(const Model& m, std::int64_t tokens)
    : layers(layers_of(m)),
      x(bytes(tokens * m.hidden_size)),
      both(bytes(2 * tokens * m.intermediate_size)),
      h(bytes(tokens * m.intermediate_size)),
      y(bytes(tokens * m.hidden_size)),
      sink(256) {
  x.fill_normal(GATEFOLD_DTYPE_BF16, 1);
}

Desc desc_of(gatefold_op op, std::int64_t depth, std::int64_t columns) {
  Desc desc{.op = op,
            .dtype = GATEFOLD_DTYPE_BF16,
            .device = GATEFOLD_DEVICE_CUDA,
            .hidden_size = depth,
            .intermediate_size = columns};
  if (op != GATEFOLD_OP_GEMM) {
    desc.layout = Layout::gate_up();
    desc.activation = Activation::silu();
  }
  return desc;
}

Ours::Ours(const Model& m, std::int64_t tokens, const std::string& implementation)
    : mlp(mlp_of(m, implementation)), workspace(mlp.workspace_size(tokens)) {}

void Ours::enqueue(const Tensors& t, const Layer& layer, std::int64_t tokens, cudaStream_t stream) const {
  Args a;
  a.tokens = tokens;
  a.x = t.x.get();
  a.gate = layer.gate_up.get();
  a.down = layer.down.get();
  a.out = t.y.get();
  a.workspace = {workspace.get(), workspace.bytes()};
  a.stream = stream;
  mlp.run(a);
}

Unfused::Unfused(const CublasLt& library, const Model& m, std::int64_t tokens)
    : gate_up(library, GATEFOLD_DTYPE_BF16, tokens, 2 * m.intermediate_size, m.hidden_size),
      down(library, GATEFOLD_DTYPE_BF16, tokens, m.hidden_size, m.intermediate_size),
      act_and_mul(desc_of(GATEFOLD_OP_ACT_AND_MUL, 0, m.intermediate_size)) {}

void Unfused::tune(const Tensors& t) {
  gate_up.tune(t.x.get(), t.layers[0].gate_up.get(), t.both.get(), nullptr);
  down.tune(t.h.get(), t.layers[0].down.get(), t.y.get(), nullptr);
}

void Unfused::enqueue_gate_up(const Tensors& t, const Layer& layer, std::int64_t tokens, cudaStream_t stream) const {
  gate_up.run(t.x.get(), layer.gate_up.get(), t.both.get(), stream);
  Args a;
  a.tokens = tokens;
  a.gate = t.both.get();
  a.out = t.h.get();
  a.stream = stream;
  act_and_mul.run(a);
}

void Unfused::enqueue(const Tensors& t, const Layer& layer, std::int64_t tokens, cudaStream_t stream) const {
  enqueue_gate_up(t, layer, tokens, stream);
  down.run(t.h.get(), layer.down.get(), t.y.get(), stream);
}

}  // namespace gatefold::bench
