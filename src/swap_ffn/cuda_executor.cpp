#include <algorithm>
#include <array>

#include "cuda/common/executor.hpp"
#include "cuda/swap_ffn/pass_clock.hpp"
#include "cuda/swap_ffn/passes.hpp"
#include "dispatch/steps.hpp"
#include "swap_ffn/cuda_layout.hpp"
#include "swap_ffn/cuda_passes.hpp"
#include "swap_ffn/cuda_products.hpp"
#include "swap_ffn/products.hpp"
#include "swap_ffn/step.hpp"

// The step on a GPU: the library's products, and between them kernels that do everything else at once. At k_ffn = 2 a
// step of 8 events is 1 + 8 (1 + 2 + 1 + 2) + 3 = 52 launches:
//
//   start                            s from x
//   `events` times
//     route                          the router's product, decisions, exchange of rows, 1/rms of what came in
//     `k_ffn` times
//       rms                          of the second MLP on: 1/rms of its input
//       gate_up, down                1/rms scales gate_up's sums before the activation
//   pool, collapse, delta
//
// The cores are rows of one product, all at once. Each row of s is computed alike wherever it stands, and every sum is
// added up in one order.
namespace gatefold::swap_ffn {
namespace {

namespace gpu = cuda::swap_ffn;

class CudaExecutor final : public Executor {
 public:
  explicit CudaExecutor(const Config& config)
      : c_(config), prepared_(config), gate_up_(op_step(scaled_gate_up(c_))), down_(config) {}

  std::size_t prepared_size() const override { return prepared_.size; }

  Status prepare(const Weights& weights, std::byte* prepared, void* stream) const override {
    std::array<cuda::NamedPointer, 1 + weight_count> tensors{{{"prepared", prepared}}};
    for (std::size_t i = 0; i < weight_count; ++i) {
      tensors[1 + i] = {tensor_of(c_, static_cast<Weight>(i)).name, weights[i]};
    }
    const cuda::OwnerScope owner(tensors);
    if (!owner.status().ok()) return owner.status();
    const gpu::Queue queue{static_cast<cudaStream_t>(stream), owner.device()};
    if (Status status = prepare_products(weights, prepared, queue); !status.ok()) return status;
    if (Status status = prepare_tables(weights, prepared, queue); !status.ok()) return status;
    return prepare_router(weights, prepared, queue);
  }

  std::size_t workspace_size(std::int64_t max_batch) const override {
    const std::int64_t rows = max_batch * c_.cores;
    return CudaWorkspaceLayout(c_, max_batch).size +
           std::max(gate_up_->workspace_size(rows), down_.workspace_size(rows));
  }

  std::vector<gatefold_swap_ffn_pass_info> passes(std::int64_t batch) const override { return cuda_passes(c_, batch); }

  Status step(const StepOperands& o) const override {
    const std::array<cuda::NamedPointer, 8> tensors{{{"delta", o.delta},
                                                     {"x", o.x},
                                                     {"prepared", o.prepared},
                                                     {"ram", o.ram},
                                                     {"stream_map", o.stream_map},
                                                     {"workspace", o.workspace},
                                                     {"states", o.states},
                                                     {"decisions", o.decisions}}};
    const cuda::OwnerScope owner(tensors);
    if (!owner.status().ok()) return owner.status();
    return Run(*this, o, owner.device()).all();
  }

 private:
  // One step: where its tensors are, and what is enqueued.
  class Run {
   public:
    Run(const CudaExecutor& executor, const StepOperands& operands, int device)
        : e_(executor),
          o_(operands),
          layout_(executor.c_, operands.batch),
          queue_{static_cast<cudaStream_t>(operands.stream), device},
          sizes_{.dtype = executor.c_.dtype,
                 .batch = operands.batch,
                 .hidden_size = executor.c_.hidden_size,
                 .cores = executor.c_.cores,
                 .router_width = executor.c_.router_width,
                 .collapse_heads = executor.c_.collapse_heads,
                 .collapse_width = executor.c_.collapse_width,
                 .eps = executor.c_.eps},
          clock_({operands.pass_seconds, operands.pass_seconds == nullptr ? 0U : std::size_t{cuda_pass_count}},
                 queue_.stream, device) {}

    Status all() {
      const Config& c = e_.c_;
      if (Status status = start(); !status.ok()) return status;
      for (std::int64_t event = 0; event < c.events; ++event) {
        if (Status status = route(event); !status.ok()) return status;
        for (std::int64_t k = 0; k < c.k_ffn; ++k) {
          if (Status status = mlp(k > 0); !status.ok()) return status;
          if (Status status = keep_states(1 + event * c.k_ffn + k); !status.ok()) return status;
        }
      }
      if (Status status = collapse(); !status.ok()) return status;
      return clock_.finish();
    }

   private:
    const float* floats(std::size_t offset) const { return reinterpret_cast<const float*>(o_.prepared + offset); }
    float* work(std::size_t offset) const { return reinterpret_cast<float*>(o_.workspace + offset); }
    std::byte* s() const { return o_.workspace + layout_.s; }

    // Of a kernel that has been enqueued, or could not be.
    Status done(CudaPass pass, Status status) {
      if (status.ok()) clock_.lap(static_cast<int>(pass));
      return status;
    }

    Status start() {
      const CudaPreparedLayout& at = e_.prepared_;
      Status status =
          done(CudaPass::start, gpu::start(sizes_, o_.x, floats(at.core_scale), floats(at.core_shift), s(), queue_));
      return status.ok() ? keep_states(0) : status;
    }

    Status route(std::int64_t event) {
      const CudaPreparedLayout& at = e_.prepared_;
      return done(CudaPass::route,
                  gpu::route(sizes_,
                             {.s = s(),
                              .ram = o_.ram,
                              .stream_map = o_.stream_map,
                              .decisions = o_.decisions == nullptr ? nullptr : o_.decisions + event * sizes_.rows(),
                              .inverse_rms = work(layout_.inverse_rms),
                              .router_w = o_.prepared + at.router,
                              .router_norm = floats(at.router_norm),
                              .swap_w = floats(at.swap_w),
                              .swap_b = floats(at.swap_b),
                              .bank_w = floats(at.bank_w),
                              .bank_b = floats(at.bank_b)},
                             queue_));
    }

    Operands product(const std::byte* x, std::byte* out) const {
      Operands operands;
      operands.tokens = sizes_.rows();
      operands.x = x;
      operands.out = out;
      operands.workspace = o_.workspace + layout_.size;
      operands.workspace_size = o_.workspace_size - layout_.size;
      operands.stream = o_.stream;
      operands.device = queue_.device;
      return operands;
    }

    Status mlp(bool again) {
      float* const inverse_rms = work(layout_.inverse_rms);
      if (again) {
        Status status = done(CudaPass::rms, gpu::measure(sizes_, s(), inverse_rms, queue_));
        if (!status.ok()) return status;
      }
      Operands first = product(s(), o_.workspace + layout_.h);
      first.gate = o_.prepared + e_.prepared_.gate;
      first.up = o_.prepared + e_.prepared_.up;
      first.row_scale = inverse_rms;
      if (Status status = done(CudaPass::gate_up, e_.gate_up_->run(first)); !status.ok()) return status;
      Operands second = product(first.out, s());
      second.up = o_.prepared + e_.prepared_.down;
      return done(CudaPass::down, e_.down_.run(second));
    }

    Status collapse() {
      const CudaPreparedLayout& at = e_.prepared_;
      float* const pooled = work(layout_.pooled);
      float* const q = work(layout_.q);
      Status status = done(CudaPass::pool, gpu::pool(sizes_, s(), floats(at.alpha), pooled, queue_));
      if (!status.ok()) return status;
      status = done(CudaPass::collapse, gpu::collapse(sizes_, o_.prepared + at.basis, pooled, q, queue_));
      if (!status.ok()) return status;
      return done(CudaPass::decoder, gpu::write_delta(sizes_, o_.prepared + at.decoder, q, o_.delta, queue_));
    }

    Status keep_states(std::int64_t slice) const {
      if (o_.states == nullptr) return {};
      const std::int64_t bytes = sizes_.rows() * e_.c_.row_bytes();
      return gpu::copy(o_.states + slice * bytes, s(), bytes, queue_);
    }

    const CudaExecutor& e_;
    const StepOperands& o_;
    CudaWorkspaceLayout layout_;
    gpu::Queue queue_;
    gpu::Sizes sizes_;
    gpu::PassClock clock_;
  };

  std::int64_t elements_of(Weight weight) const { return elements(tensor_of(c_, weight)); }

  Status prepare_products(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    for (const auto& [weight, offset] : {std::pair{gate_w, prepared_.gate}, std::pair{up_w, prepared_.up}}) {
      Status status = gpu::fold_columns(c_.dtype, weights[weight], weights[ffn_norm], c_.intermediate_size,
                                        c_.hidden_size, prepared + offset, queue);
      if (!status.ok()) return status;
    }
    for (const auto& [weight, offset] : {std::pair{down_w, prepared_.down}, std::pair{router_w, prepared_.router},
                                         std::pair{basis, prepared_.basis}, std::pair{decoder, prepared_.decoder}}) {
      Status status = gpu::copy(prepared + offset, weights[weight], elements_of(weight) * size_of(c_.dtype), queue);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status prepare_tables(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    const auto affine = [&](Weight w, Weight b, std::int64_t columns, double offset) {
      return gpu::Affine{weights[core_embed], weights[w], weights[b], c_.cores, columns, c_.core_embed_size, offset};
    };
    const auto out = [&](std::size_t offset) { return reinterpret_cast<float*>(prepared + offset); };
    Status status =
        gpu::core_table(c_.dtype, affine(scale_w, scale_b, c_.hidden_size, 1.0), out(prepared_.core_scale), queue);
    if (!status.ok()) return status;
    status = gpu::core_table(c_.dtype, affine(shift_w, shift_b, c_.hidden_size, 0.0), out(prepared_.core_shift), queue);
    if (!status.ok()) return status;
    return gpu::core_softmax(c_.dtype, affine(alpha_w, alpha_b, c_.collapse_heads, 0.0), out(prepared_.alpha), queue);
  }

  Status prepare_router(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    for (const auto& [weight, offset] :
         {std::pair{router_norm, prepared_.router_norm}, std::pair{router_swap_w, prepared_.swap_w},
          std::pair{router_swap_b, prepared_.swap_b}, std::pair{bank_w, prepared_.bank_w},
          std::pair{bank_b, prepared_.bank_b}}) {
      Status status = gpu::widen(c_.dtype, weights[weight], elements_of(weight),
                                 reinterpret_cast<float*>(prepared + offset), queue);
      if (!status.ok()) return status;
    }
    return {};
  }

  Config c_;
  CudaPreparedLayout prepared_;
  std::unique_ptr<gatefold::Executor> gate_up_;
  CudaDown down_;
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const Config& config) { return std::make_unique<CudaExecutor>(config); }

}  // namespace gatefold::swap_ffn
