#include <algorithm>
#include <array>

#include "cuda/common/executor.hpp"
#include "cuda/common/green_context.hpp"
#include "cuda/sm90/chain.hpp"
#include "cuda/swap_ffn/pass_clock.hpp"
#include "cuda/swap_ffn/passes.hpp"
#include "dispatch/steps.hpp"
#include "swap_ffn/cuda_layout.hpp"
#include "swap_ffn/cuda_passes.hpp"
#include "swap_ffn/cuda_prepare.hpp"
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
// Where both products of an MLP are one round of tiles of Hopper's, the MLPs of an event are one launch, a chain
// (cuda/sm90/chain.cuh): 1 + 8 (1 + 1) + 3 = 20 launches. Not on a stream of a green context: the blocks of a chain
// wait for one another, and are more than its multiprocessors.
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
    return prepare_on_cuda(c_, prepared_, weights, prepared, stream);
  }

  std::size_t workspace_size(std::int64_t max_batch) const override {
    const std::int64_t rows = max_batch * c_.cores;
    return CudaWorkspaceLayout(c_, max_batch).size +
           std::max(gate_up_->workspace_size(rows), down_.workspace_size(rows));
  }

  // Of a step on the device that is the current one.
  std::vector<gatefold_swap_ffn_pass_info> passes(std::int64_t batch) const override {
    int device = -1;
    const auto& devices = cuda::devices().list;
    const bool known = cudaGetDevice(&device) == cudaSuccess && device >= 0 && device < std::ssize(devices);
    return cuda_passes(c_, batch, known && takes_chain(batch, devices[static_cast<std::size_t>(device)]));
  }

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
      const bool chained = e_.takes_chain(o_.batch, device()) && !cuda::is_in_green_context(queue_.stream);
      for (std::int64_t event = 0; event < c.events; ++event) {
        if (Status status = route(event); !status.ok()) return status;
        if (chained) {
          if (Status status = chained_mlps(event); !status.ok()) return status;
          continue;
        }
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
    std::uint32_t* counters() const { return reinterpret_cast<std::uint32_t*>(o_.workspace + layout_.counters); }
    const cuda::DeviceProperties& device() const {
      return cuda::devices().list[static_cast<std::size_t>(queue_.device)];
    }

    // Of a kernel that has been enqueued, or could not be.
    Status done(CudaPass pass, Status status) {
      if (status.ok()) clock_.lap(static_cast<int>(pass));
      return status;
    }

    Status start() {
      const CudaPreparedLayout& at = e_.prepared_;
      Status status = done(CudaPass::start, gpu::start(sizes_, o_.x, floats(at.core_scale), floats(at.core_shift), s(),
                                                       counters(), cuda::sm90::ChainState::counters, queue_));
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

    Operands gate_up_run() const {
      Operands run = product(s(), o_.workspace + layout_.h);
      run.gate = o_.prepared + e_.prepared_.gate;
      run.up = o_.prepared + e_.prepared_.up;
      run.row_scale = work(layout_.inverse_rms);
      return run;
    }
    Operands down_run() const {
      Operands run = product(o_.workspace + layout_.h, s());
      run.up = o_.prepared + e_.prepared_.down;
      return run;
    }

    Status mlp(bool again) {
      if (again) {
        Status status = done(CudaPass::rms, gpu::measure(sizes_, s(), work(layout_.inverse_rms), queue_));
        if (!status.ok()) return status;
      }
      if (Status status = done(CudaPass::gate_up, e_.gate_up_->run(gate_up_run())); !status.ok()) return status;
      return done(CudaPass::down, e_.down_.run(down_run()));
    }

    // All MLPs of an event in one launch; where each one's state is kept, each in a launch of its own.
    Status chained_mlps(std::int64_t event) {
      constexpr std::int64_t most = 1 << 20;  // of a launch
      const std::int64_t k_ffn = e_.c_.k_ffn;
      const std::int64_t together = o_.states == nullptr ? std::min(k_ffn, most) : 1;
      cuda::sm90::Chain chain = this->chain();
      for (std::int64_t k = 0; k < k_ffn; k += together) {
        chain.inverse_rms = k == 0 ? work(layout_.inverse_rms) : nullptr;
        chain.first_mlp = static_cast<std::uint32_t>(event * k_ffn + k);
        chain.mlps = static_cast<int>(std::min(together, k_ffn - k));
        Status status = done(CudaPass::chain, cuda::sm90::run_chain(chain, device(), queue_.stream));
        if (!status.ok()) return status;
        if (status = keep_states(1 + event * k_ffn + k); !status.ok()) return status;
      }
      return {};
    }

    cuda::sm90::Chain chain() const {
      cuda::sm90::Chain chain;
      chain.gate_up = scaled_gate_up(e_.c_);
      chain.down = down_product(e_.c_);
      chain.gate_up_run = gate_up_run();
      chain.down_run = down_run();
      chain.state.h_stored = counters();
      chain.state.s_stored = counters() + cuda::sm90::ChainState::counters / 2;
      chain.state.squares = reinterpret_cast<double*>(o_.workspace + layout_.squares);
      chain.eps = e_.c_.eps;
      return chain;
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

  bool takes_chain(std::int64_t batch, const cuda::DeviceProperties& device) const {
    return cuda::sm90::takes_chain(scaled_gate_up(c_), down_product(c_), batch * c_.cores, device);
  }

  Config c_;
  CudaPreparedLayout prepared_;
  std::unique_ptr<gatefold::Executor> gate_up_;
  CudaDown down_;
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const Config& config) { return std::make_unique<CudaExecutor>(config); }

}  // namespace gatefold::swap_ffn
