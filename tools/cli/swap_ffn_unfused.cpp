#include "cli/swap_ffn_unfused.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "checkpoint/input_error.hpp"
#include "cli/swap_ffn_loops.hpp"

namespace gatefold::cli {

namespace {

struct Tensors {
  explicit Tensors(SwapFfnData& from)
      : data(from),
        scale(core_table(from, "scale_w", "scale_b", from.desc().hidden_size, 1.0F)),
        shift(core_table(from, "shift_w", "shift_b", from.desc().hidden_size, 0.0F)),
        alpha(core_table(from, "alpha_w", "alpha_b", from.desc().collapse_heads, 0.0F)) {
    softmax_rows(alpha, from.desc().collapse_heads);
    const SwapFfnDesc& c = from.desc();
    const std::int64_t T = from.rows();
    const auto tensor = [&](std::int64_t count) { return Bytes(static_cast<std::size_t>(count * size_of(c.dtype))); };
    s = tensor(T * c.hidden_size);
    n = tensor(T * c.hidden_size);
    taken = tensor(T * c.hidden_size);
    z = tensor(T * c.router_width);
    gate = tensor(T * c.intermediate_size);
    up = tensor(T * c.intermediate_size);
    h = tensor(T * c.intermediate_size);
    pooled = tensor(from.batch() * c.collapse_heads * c.hidden_size);
    q = tensor(from.batch() * c.collapse_width);
    delta = tensor(from.batch() * c.hidden_size);
    swap_logit.resize(static_cast<std::size_t>(T));
    bank_logits.resize(static_cast<std::size_t>(T * GATEFOLD_SWAP_FFN_BANKS));
    swap.resize(static_cast<std::size_t>(T));
    choice.resize(static_cast<std::size_t>(T));
    bank.resize(static_cast<std::size_t>(T));
  }

  std::int64_t row_bytes() const { return data.desc().hidden_size * size_of(data.desc().dtype); }
  std::byte* row_of_ram(std::int64_t row) {
    return data.ram.data() + (row * GATEFOLD_SWAP_FFN_BANKS + bank[row]) * row_bytes();
  }

  SwapFfnData& data;
  std::vector<float> scale, shift, alpha;
  Bytes s, n, taken, z, gate, up, h, pooled, q, delta;
  std::vector<float> swap_logit, bank_logits;
  std::vector<std::uint8_t> swap, choice, bank;
};

class UnfusedOnCpu final : public UnfusedSwapFfn {
 public:
  explicit UnfusedOnCpu(SwapFfnData& data) : t_(std::make_unique<Tensors>(data)) {
    add_step(data.desc(),
             {[this] { add_start(); }, [this] { add_event(); }, [this] { add_mlp(); }, [this] { add_collapse(); }});
  }
  Bytes delta() const override { return t_->delta; }

 private:
  void add_start();
  void add_event();
  void add_mlp();
  void add_collapse();
  void add_product(const std::string& name, const Bytes& x, const Bytes& w, Bytes& out, std::int64_t rows,
                   std::int64_t columns, std::int64_t depth);
  void add_rows_pass(const std::string& name, double bytes, std::function<void()> run);

  std::unique_ptr<Tensors> t_;
};

void UnfusedOnCpu::add_start() {
  const SwapFfnDesc& c = t_->data.desc();
  add_rows_pass(
      "start",
      static_cast<double>(t_->data.rows() * t_->row_bytes()) + 8.0 * static_cast<double>(c.cores * c.hidden_size),
      [t = t_.get()] { start_rows(t->data, t->scale, t->shift, t->s); });
}

void UnfusedOnCpu::add_rows_pass(const std::string& name, double bytes, std::function<void()> run) {
  passes_.push_back({.name = name,
                     .rows = t_->data.rows(),
                     .columns = t_->data.desc().hidden_size,
                     .bytes = bytes,
                     .run = std::move(run)});
}

void UnfusedOnCpu::add_product(const std::string& name, const Bytes& x, const Bytes& w, Bytes& out, std::int64_t rows,
                               std::int64_t columns, std::int64_t depth) {
  const gatefold_dtype dtype = t_->data.desc().dtype;
  const auto plan = std::make_shared<Plan>(Desc{.op = GATEFOLD_OP_GEMM,
                                                .dtype = dtype,
                                                .device = GATEFOLD_DEVICE_CPU,
                                                .hidden_size = depth,
                                                .intermediate_size = columns});
  const auto workspace = std::make_shared<Workspace>(plan->workspace_size(rows));
  passes_.push_back(product_pass(name, dtype, rows, columns, depth, [plan, workspace, &x, &w, &out, rows] {
    plan->run({.tokens = rows, .x = x.data(), .up = w.data(), .out = out.data(), .workspace = *workspace});
  }));
}

void UnfusedOnCpu::add_event() {
  Tensors* t = t_.get();
  const SwapFfnDesc& c = t->data.desc();
  const std::int64_t T = t->data.rows();
  const std::int64_t R = c.router_width;
  const auto state = static_cast<double>(T * t->row_bytes());
  const auto routes = static_cast<double>(T * R * size_of(c.dtype));
  const auto each = static_cast<double>(T);
  const auto weight = [t](const char* name) { return &t->data.weight(name); };
  add_rows_pass("rms norm, router", 2.0 * state, [t, &c, T, norm = weight("router_norm")] {
    rms_norm(c.dtype, t->s, *norm, c.eps, T, c.hidden_size, t->n);
  });
  add_product("gemm router", t->n, *weight("router_w"), t->z, T, R, c.hidden_size);
  add_rows_pass("swap logit", routes, [t, &c, T, R, w = weight("router_swap_w"), b = weight("router_swap_b")] {
    narrow_product(c.dtype, t->z, *w, *b, T, R, 1, t->swap_logit);
  });
  add_rows_pass("sigmoid", 8.0 * each, [t, T] {
    for (std::int64_t row = 0; row < T; ++row) t->swap_logit[row] = 1.0F / (1.0F + std::exp(-t->swap_logit[row]));
  });
  add_rows_pass("threshold", 5.0 * each, [t, T] {
    for (std::int64_t row = 0; row < T; ++row) t->swap[row] = t->swap_logit[row] > 0.5F ? 1 : 0;
  });
  add_rows_pass("bank logits", routes, [t, &c, T, R, w = weight("bank_w"), b = weight("bank_b")] {
    narrow_product(c.dtype, t->z, *w, *b, T, R, GATEFOLD_SWAP_FFN_BANKS, t->bank_logits);
  });
  add_rows_pass("argmax", 17.0 * each, [t, T] {
    for (std::int64_t row = 0; row < T; ++row) {
      const float* logits = t->bank_logits.data() + row * GATEFOLD_SWAP_FFN_BANKS;
      t->choice[row] = static_cast<std::uint8_t>(std::max_element(logits, logits + GATEFOLD_SWAP_FFN_BANKS) - logits);
    }
  });
  add_rows_pass("lane of the map", 3.0 * each, [t, T] {
    for (std::int64_t row = 0; row < T; ++row) {
      t->bank[row] = static_cast<std::uint8_t>(t->data.stream_map[row] >> (2 * t->choice[row]) & 3);
    }
  });
  add_rows_pass("gather ram", 2.0 * state, [t, T] {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < T; ++row) {
      std::memcpy(t->taken.data() + row * t->row_bytes(), t->row_of_ram(row), static_cast<std::size_t>(t->row_bytes()));
    }
  });
  add_rows_pass("scatter s where swap", 2.0 * state, [t, T] {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < T; ++row) {
      if (t->swap[row] == 0) continue;
      std::memcpy(t->row_of_ram(row), t->s.data() + row * t->row_bytes(), static_cast<std::size_t>(t->row_bytes()));
    }
  });
  add_rows_pass("s where swap", 2.0 * state, [t, T] {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < T; ++row) {
      if (t->swap[row] == 0) continue;
      const std::int64_t begin = row * t->row_bytes();
      std::memcpy(t->s.data() + begin, t->taken.data() + begin, static_cast<std::size_t>(t->row_bytes()));
    }
  });
  add_rows_pass("exchange lanes", 4.0 * each, [t, T] {
    for (std::int64_t row = 0; row < T; ++row) {
      if (t->swap[row] == 0) continue;
      std::uint8_t& map = t->data.stream_map[row];
      const unsigned difference = (map & 3U) ^ t->bank[row];
      map = static_cast<std::uint8_t>(map ^ difference ^ (difference << (2U * t->choice[row])));
    }
  });
}

void UnfusedOnCpu::add_mlp() {
  Tensors* t = t_.get();
  const SwapFfnDesc& c = t->data.desc();
  const std::int64_t T = t->data.rows();
  const std::int64_t D = c.hidden_size;
  const std::int64_t F = c.intermediate_size;
  add_rows_pass(
      "rms norm, MLP", 2.0 * static_cast<double>(T * t->row_bytes()),
      [t, &c, T, D, norm = &t->data.weight("ffn_norm")] { rms_norm(c.dtype, t->s, *norm, c.eps, T, D, t->n); });
  add_product("gemm gate", t->n, t->data.weight("gate_w"), t->gate, T, F, D);
  add_product("gemm up", t->n, t->data.weight("up_w"), t->up, T, F, D);
  const auto plan = std::make_shared<Plan>(Desc{.op = GATEFOLD_OP_ACT_AND_MUL,
                                                .dtype = c.dtype,
                                                .device = GATEFOLD_DEVICE_CPU,
                                                .layout = Layout::separate(),
                                                .activation = Activation::silu(),
                                                .intermediate_size = F});
  passes_.push_back({.name = "act_and_mul",
                     .rows = T,
                     .columns = F,
                     .bytes = 3.0 * static_cast<double>(T * F * size_of(c.dtype)),
                     .run = [t, T, plan] {
                       plan->run({.tokens = T, .gate = t->gate.data(), .up = t->up.data(), .out = t->h.data()});
                     }});
  add_product("gemm down", t->h, t->data.weight("down_w"), t->s, T, D, F);
}

void UnfusedOnCpu::add_collapse() {
  Tensors* t = t_.get();
  const SwapFfnDesc& c = t->data.desc();
  const std::int64_t B = t->data.batch();
  const std::int64_t D = c.hidden_size;
  const std::int64_t K = c.collapse_heads;
  const std::int64_t Rc = c.collapse_width;
  const auto size = static_cast<double>(size_of(c.dtype));
  add_rows_pass("pool", static_cast<double>(t->data.rows() * t->row_bytes()),
                [t] { pool_cores(t->data, t->alpha, t->s, t->pooled); });
  add_rows_pass("basis", static_cast<double>(K * Rc * D) * size, [t] { collapse_heads(t->data, t->pooled, t->q); });
  add_rows_pass("silu", 2.0 * static_cast<double>(B * Rc) * size,
                [t, &c, B, Rc] { silu_in_place(c.dtype, B * Rc, t->q); });
  add_product("gemm decoder", t->q, t->data.weight("decoder"), t->delta, B, D, Rc);
}

}  // namespace

void UnfusedSwapFfn::add_step(const SwapFfnDesc& desc, const Parts& parts) {
  parts.start();
  for (std::int64_t event = 0; event < desc.events; ++event) {
    parts.event();
    for (std::int64_t k = 0; k < desc.k_ffn; ++k) parts.mlp();
  }
  parts.collapse();
}

UnfusedPass UnfusedSwapFfn::product_pass(const std::string& name, gatefold_dtype dtype, std::int64_t rows,
                                         std::int64_t columns, std::int64_t depth, std::function<void()> run) {
  const auto T = static_cast<double>(rows);
  const auto N = static_cast<double>(columns);
  const auto K = static_cast<double>(depth);
  return {.name = name,
          .rows = rows,
          .columns = columns,
          .depth = depth,
          .flops = 2.0 * T * N * K,
          .bytes = (T * K + N * K + T * N) * static_cast<double>(size_of(dtype)),
          .run = std::move(run)};
}

std::unique_ptr<UnfusedSwapFfn> make_unfused_swap_ffn(SwapFfnData& data, Backend& backend) {
  if (backend.uses_host_memory()) return std::make_unique<UnfusedOnCpu>(data);
#if GATEFOLD_TOOL_WITH_CUBLASLT
  return make_unfused_swap_ffn_on_cuda(data, backend);
#else
  checkpoint::throw_input_error(
      "swap-ffn: the unfused step on cuda needs cuBLASLt, which this program was built without");
#endif
}

double apart_after_a_step(SwapFfnJob& job, const SwapFfnData& data, const UnfusedSwapFfn& unfused, Backend& backend) {
  job.step();
  unfused.step();
  backend.synchronise();
  return relative_l2(data.desc().dtype, job.delta, unfused.delta());
}

}  // namespace gatefold::cli
