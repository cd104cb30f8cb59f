#include <array>
#include <chrono>

#include "core/float16.hpp"
#include "cpu/threads.hpp"
#include "dispatch/steps.hpp"
#include "swap_ffn/cpu_layout.hpp"
#include "swap_ffn/cpu_passes.hpp"
#include "swap_ffn/cpu_rows.hpp"
#include "swap_ffn/products.hpp"
#include "swap_ffn/step.hpp"
#include "swap_ffn/tables.hpp"

// The step on a CPU: the library's products, and between them passes over rows that read each row once.
//
//   for each block of up to 512 rows
//     start                        s from x
//     `events` times
//       router: measure            s as fp32, and 1/rms
//       router: product            s . router^T, in fp32
//       swap                       z, decisions, exchange of rows, 1/rms of what came in
//       `k_ffn` times              gate_up scales its sums by 1/rms before the activation
//         gate_up, down, rms
//     pool                         sums over the block's cores
//   collapse                       two products in fp32
//
// Each row is computed by one thread from first to last in every pass, and sums over cores run in their order: how the
// work is shared out shows in no result.
namespace gatefold::swap_ffn {
namespace {

Problem wide_product(std::int64_t depth, std::int64_t columns) {
  return product(Op::gemm, DType::fp32, Device::cpu, depth, columns);
}

// Adds up each pass's time where somebody wants it.
class Clock {
 public:
  explicit Clock(double* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) std::fill_n(seconds_, pass_count, 0.0);
    lap_ = now();
  }
  void lap(Pass pass) {
    if (seconds_ == nullptr) return;
    const auto time = now();
    seconds_[static_cast<std::size_t>(pass)] += std::chrono::duration<double>(time - lap_).count();
    lap_ = time;
  }

 private:
  std::chrono::steady_clock::time_point now() const {
    return seconds_ == nullptr ? std::chrono::steady_clock::time_point{} : std::chrono::steady_clock::now();
  }
  double* seconds_;
  std::chrono::steady_clock::time_point lap_;
};

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(const Config& config)
      : c_(config),
        prepared_(config),
        threads_(cpu::thread_limit()),
        gate_up_(op_step(scaled_gate_up(c_))),
        down_(op_step(down_product(c_))),
        router_(op_step(wide_product(c_.hidden_size, c_.router_width))),
        basis_(op_step(wide_product(c_.collapse_heads * c_.hidden_size, c_.collapse_width))),
        decoder_(op_step(wide_product(c_.collapse_width, c_.hidden_size))) {}

  std::size_t prepared_size() const override { return prepared_.size; }

  Status prepare(const Weights& weights, std::byte* prepared, void* /*stream*/) const override {
    prepare_products(weights, prepared);
    prepare_router(weights, prepared);
    const CoreTables tables = core_tables(c_, weights);
    to_floats(tables.scale, prepared + prepared_.core_scale);
    to_floats(tables.shift, prepared + prepared_.core_shift);
    to_floats(tables.alpha, prepared + prepared_.alpha);
    return {};
  }

  std::size_t workspace_size(std::int64_t max_batch) const override {
    const std::int64_t rows = std::min(block_rows, max_batch * c_.cores);
    const std::size_t products =
        std::max({gate_up_->workspace_size(rows), down_->workspace_size(rows), router_->workspace_size(rows),
                  basis_->workspace_size(max_batch), decoder_->workspace_size(max_batch)});
    return WorkspaceLayout(c_, max_batch).size + products;
  }

  std::vector<gatefold_swap_ffn_pass_info> passes(std::int64_t batch) const override { return cpu_passes(c_, batch); }

  Status step(const StepOperands& operands) const override {
    const std::int64_t rows = operands.batch * c_.cores;
    const WorkspaceLayout layout(c_, operands.batch);
    Clock clock(operands.pass_seconds);
    for (std::int64_t first = 0; first < rows; first += block_rows) {
      const Block block = block_at(operands, layout, first, std::min(block_rows, rows - first));
      if (Status status = run_block(operands, layout, block, clock); !status.ok()) return status;
    }
    return collapse_all(operands, layout, clock);
  }

 private:
  template <class Stored>
  const Stored* at(const StepOperands& operands, std::size_t offset) const {
    return reinterpret_cast<const Stored*>(operands.prepared + offset);
  }

  void prepare_products(const Weights& weights, std::byte* prepared) const {
    const std::int64_t D = c_.hidden_size;
    const std::int64_t F = c_.intermediate_size;
    fold_columns(weights[gate_w], weights[ffn_norm], c_.dtype, F, D, prepared + prepared_.gate);
    fold_columns(weights[up_w], weights[ffn_norm], c_.dtype, F, D, prepared + prepared_.up);
    std::memcpy(prepared + prepared_.down, weights[down_w], static_cast<std::size_t>(F * c_.row_bytes()));
    widen_to_floats(weights, decoder, prepared + prepared_.decoder);
    // [K, Rc, D] -> [Rc, K, D]: one product sums over heads and columns at once.
    auto* to = reinterpret_cast<float*>(prepared + prepared_.basis);
    for (std::int64_t r = 0; r < c_.collapse_width; ++r) {
      for (std::int64_t k = 0; k < c_.collapse_heads; ++k) {
        const std::int64_t from = (k * c_.collapse_width + r) * D;
        for (std::int64_t d = 0; d < D; ++d) *to++ = static_cast<float>(load(weights[basis], c_.dtype, from + d));
      }
    }
  }

  void prepare_router(const Weights& weights, std::byte* prepared) const {
    const std::int64_t D = c_.hidden_size;
    auto* router = reinterpret_cast<float*>(prepared + prepared_.router);
    for (std::int64_t i = 0; i < c_.router_width * D; ++i) {
      router[i] =
          static_cast<float>(load(weights[router_w], c_.dtype, i) * load(weights[router_norm], c_.dtype, i % D));
    }
    widen_to_floats(weights, router_swap_w, prepared + prepared_.swap_w);
    widen_to_floats(weights, router_swap_b, prepared + prepared_.swap_b);
    widen_to_floats(weights, bank_w, prepared + prepared_.bank_w);
    widen_to_floats(weights, bank_b, prepared + prepared_.bank_b);
  }

  void widen_to_floats(const Weights& weights, Weight weight, std::byte* out) const {
    cpu::widen(weights[weight], c_.dtype, elements(tensor_of(c_, weight)), reinterpret_cast<float*>(out));
  }

  static void to_floats(const std::vector<double>& values, std::byte* out) {
    std::transform(values.begin(), values.end(), reinterpret_cast<float*>(out),
                   [](double value) { return static_cast<float>(value); });
  }

  Block block_at(const StepOperands& o, const WorkspaceLayout& layout, std::int64_t first, std::int64_t rows) const {
    Block block;
    block.first = first;
    block.rows = rows;
    block.threads = threads_;
    block.s = o.workspace + layout.s;
    block.wide = reinterpret_cast<float*>(o.workspace + layout.wide);
    block.inverse_rms = reinterpret_cast<float*>(o.workspace + layout.inverse_rms);
    block.routes = reinterpret_cast<float*>(o.workspace + layout.routes);
    return block;
  }

  RouterWeights router_weights(const StepOperands& o) const {
    return {at<float>(o, prepared_.swap_w), at<float>(o, prepared_.swap_b), at<float>(o, prepared_.bank_w),
            at<float>(o, prepared_.bank_b)};
  }

  Status run_block(const StepOperands& o, const WorkspaceLayout& layout, const Block& block, Clock& clock) const {
    start_rows(c_, block, o.x, at<float>(o, prepared_.core_scale), at<float>(o, prepared_.core_shift));
    keep_states(o, block, 0);
    clock.lap(Pass::start);
    for (std::int64_t event = 0; event < c_.events; ++event) {
      measure_rows(c_, block);
      clock.lap(Pass::measure);
      if (Status status = route_rows(o, layout, block); !status.ok()) return status;
      clock.lap(Pass::route);
      std::uint8_t* decisions =
          o.decisions == nullptr ? nullptr : o.decisions + event * o.batch * c_.cores + block.first;
      swap_rows(c_, block, router_weights(o), o.ram, o.stream_map, decisions);
      clock.lap(Pass::swap);
      for (std::int64_t k = 0; k < c_.k_ffn; ++k) {
        if (Status status = run_mlp(o, layout, block, k > 0, clock); !status.ok()) return status;
        keep_states(o, block, 1 + event * c_.k_ffn + k);
      }
    }
    measure_rows(c_, block);
    pool_rows(c_, block, at<float>(o, prepared_.alpha), reinterpret_cast<float*>(o.workspace + layout.pooled));
    clock.lap(Pass::pool);
    return {};
  }

  Status route_rows(const StepOperands& o, const WorkspaceLayout& layout, const Block& block) const {
    Operands operands = inner(o, layout);
    operands.tokens = block.rows;
    operands.x = o.workspace + layout.wide;
    operands.up = o.prepared + prepared_.router;
    operands.out = o.workspace + layout.routes;
    return router_->run(operands);
  }

  Status run_mlp(const StepOperands& o, const WorkspaceLayout& layout, const Block& block, bool again,
                 Clock& clock) const {
    if (again) measure_rows(c_, block);
    clock.lap(Pass::rms);
    Operands first = inner(o, layout);
    first.tokens = block.rows;
    first.x = block.s;
    first.gate = o.prepared + prepared_.gate;
    first.up = o.prepared + prepared_.up;
    first.row_scale = block.inverse_rms;
    first.out = o.workspace + layout.h;
    if (Status status = gate_up_->run(first); !status.ok()) return status;
    clock.lap(Pass::gate_up);
    Operands second = inner(o, layout);
    second.tokens = block.rows;
    second.x = first.out;
    second.up = o.prepared + prepared_.down;
    second.out = block.s;
    Status status = down_->run(second);
    clock.lap(Pass::down);
    return status;
  }

  Status collapse_all(const StepOperands& o, const WorkspaceLayout& layout, Clock& clock) const {
    Operands first = inner(o, layout);
    first.tokens = o.batch;
    first.x = o.workspace + layout.pooled;
    first.up = o.prepared + prepared_.basis;
    first.out = o.workspace + layout.q;
    if (Status status = basis_->run(first); !status.ok()) return status;
    auto* q = reinterpret_cast<float*>(first.out);
    cpu::activate({ActivationKind::silu}, q, o.batch * c_.collapse_width, q);
    Operands second = inner(o, layout);
    second.tokens = o.batch;
    second.x = first.out;
    second.up = o.prepared + prepared_.decoder;
    second.out = o.workspace + layout.delta;
    if (Status status = decoder_->run(second); !status.ok()) return status;
    cpu::narrow(reinterpret_cast<const float*>(second.out), c_.dtype, o.batch * c_.hidden_size, o.delta);
    clock.lap(Pass::collapse);
    return {};
  }

  static Operands inner(const StepOperands& o, const WorkspaceLayout& layout) {
    Operands operands;
    operands.workspace = o.workspace + layout.size;
    operands.workspace_size = o.workspace_size - layout.size;
    return operands;
  }

  void keep_states(const StepOperands& o, const Block& block, std::int64_t slice) const {
    if (o.states == nullptr) return;
    std::memcpy(o.states + (slice * o.batch * c_.cores + block.first) * c_.row_bytes(), block.s,
                static_cast<std::size_t>(block.rows * c_.row_bytes()));
  }

  Config c_;
  PreparedLayout prepared_;
  int threads_;
  std::unique_ptr<gatefold::Executor> gate_up_;
  std::unique_ptr<gatefold::Executor> down_;
  std::unique_ptr<gatefold::Executor> router_;
  std::unique_ptr<gatefold::Executor> basis_;
  std::unique_ptr<gatefold::Executor> decoder_;
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(const Config& config) { return std::make_unique<CpuExecutor>(config); }

}  // namespace gatefold::swap_ffn
