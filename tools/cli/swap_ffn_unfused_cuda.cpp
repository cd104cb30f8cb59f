#include <cuda_runtime_api.h>

#include <cstring>
#include <deque>
#include <stdexcept>

#include "cli/swap_ffn_kernels.hpp"
#include "cli/swap_ffn_loops.hpp"
#include "cli/swap_ffn_unfused.hpp"
#include "cuda/cublaslt.hpp"

// The unfused step on a GPU: separate launches, and cuBLASLt's products, each the fastest of its heuristics'
// candidates.
namespace gatefold::cli {
namespace {

void require(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) throw std::runtime_error("CUDA: " + what + ": " + cudaGetErrorString(error));
}

class UnfusedOnCuda final : public UnfusedSwapFfn {
 public:
  UnfusedOnCuda(const SwapFfnData& data, Backend& backend)
      : data_(data),
        backend_(backend),
        c_(data.desc()),
        rows_(data.rows()),
        launch_{c_.dtype, static_cast<cudaStream_t>(backend.stream())},
        act_and_mul_({.op = GATEFOLD_OP_ACT_AND_MUL,
                      .dtype = c_.dtype,
                      .device = GATEFOLD_DEVICE_CUDA,
                      .layout = Layout::separate(),
                      .activation = Activation::silu(),
                      .intermediate_size = c_.intermediate_size}) {
    allocate();
    add_step(c_, {[this] { add_start(); }, [this] { add_event(); }, [this] { add_mlp(); }, [this] { add_collapse(); }});
    tune();
  }

  Bytes delta() const override {
    Bytes values(data_.x.size());
    backend_.download({values.data(), values.size()}, delta_.data());
    return values;
  }

 private:
  // A product of the step, used wherever it occurs.
  struct Product {
    bench::CublasLtGemm gemm;
    const std::byte* x;
    const std::byte* w;
    std::byte* out;
  };

  DeviceBuffer uploaded(std::span<const std::byte> values) const {
    DeviceBuffer buffer(backend_, values.size());
    backend_.upload(buffer.writable(), values);
    return buffer;
  }
  DeviceBuffer tensor(std::int64_t count) const {
    return {backend_, static_cast<std::size_t>(count * size_of(c_.dtype))};
  }
  const std::byte* weight(const char* name) {
    const Bytes& values = data_.weight(name);
    weights_.push_back(uploaded({values.data(), values.size()}));
    return weights_.back().data();
  }
  DeviceBuffer table(const std::vector<float>& values) const { return uploaded(std::as_bytes(std::span(values))); }

  void allocate() {
    const std::int64_t D = c_.hidden_size;
    const std::int64_t B = data_.batch();
    scale_ = table(core_table(data_, "scale_w", "scale_b", D, 1.0F));
    shift_ = table(core_table(data_, "shift_w", "shift_b", D, 0.0F));
    std::vector<float> alpha = core_table(data_, "alpha_w", "alpha_b", c_.collapse_heads, 0.0F);
    softmax_rows(alpha, c_.collapse_heads);
    alpha_ = table(alpha);
    x_ = uploaded({data_.x.data(), data_.x.size()});
    ram_ = uploaded({data_.ram.data(), data_.ram.size()});
    map_ = uploaded(std::as_bytes(std::span(data_.stream_map)));
    s_ = tensor(rows_ * D);
    n_ = tensor(rows_ * D);
    taken_ = tensor(rows_ * D);
    z_ = tensor(rows_ * c_.router_width);
    gate_ = tensor(rows_ * c_.intermediate_size);
    up_ = tensor(rows_ * c_.intermediate_size);
    h_ = tensor(rows_ * c_.intermediate_size);
    pooled_ = tensor(B * c_.collapse_heads * D);
    q_ = tensor(B * c_.collapse_width);
    delta_ = tensor(B * D);
    const auto each = static_cast<std::size_t>(rows_);
    swap_logit_ = DeviceBuffer(backend_, each * 4);
    bank_logits_ = DeviceBuffer(backend_, each * 4 * GATEFOLD_SWAP_FFN_BANKS);
    for (DeviceBuffer* bytes : {&swap_, &choice_, &bank_}) *bytes = DeviceBuffer(backend_, each);

    const std::int64_t F = c_.intermediate_size;
    router_ = product(rows_, c_.router_width, D, n_, weight("router_w"), z_);
    gate_product_ = product(rows_, F, D, n_, weight("gate_w"), gate_);
    up_product_ = product(rows_, F, D, n_, weight("up_w"), up_);
    down_ = product(rows_, D, F, h_, weight("down_w"), s_);
    decoder_ = product(B, D, c_.collapse_width, q_, weight("decoder"), delta_);
    router_norm_ = weight("router_norm");
    ffn_norm_ = weight("ffn_norm");
    swap_w_ = weight("router_swap_w");
    swap_b_ = weight("router_swap_b");
    bank_w_ = weight("bank_w");
    bank_b_ = weight("bank_b");
    basis_ = weight("basis");
  }

  std::unique_ptr<Product> product(std::int64_t tokens, std::int64_t columns, std::int64_t depth, const DeviceBuffer& x,
                                   const std::byte* w, const DeviceBuffer& out) {
    static const bench::CublasLt library;
    return std::unique_ptr<Product>(
        new Product{{library, c_.dtype, tokens, columns, depth}, x.data(), w, out.writable()});
  }

  void add_product(const std::string& name, const Product& p, std::int64_t rows, std::int64_t columns,
                   std::int64_t depth) {
    passes_.push_back(product_pass(name, c_.dtype, rows, columns, depth,
                                   [this, &p] { p.gemm.run(p.x, p.w, p.out, launch_.stream); }));
  }

  // `enqueue` returns its launch's error.
  template <class Enqueue>
  void add(const std::string& name, double bytes, Enqueue enqueue) {
    passes_.push_back({.name = name, .rows = rows_, .columns = c_.hidden_size, .bytes = bytes, .run = [name, enqueue] {
                         require(enqueue(), name);
                       }});
  }

  double state() const { return static_cast<double>(rows_ * c_.hidden_size * size_of(c_.dtype)); }

  void add_start() {
    add("start", state() + 8.0 * static_cast<double>(c_.cores * c_.hidden_size), [this] {
      return unfused::start(launch_, x_.data(), floats(scale_), floats(shift_), s_.writable(), rows_, c_.cores,
                            c_.hidden_size);
    });
  }

  void add_norm(const std::string& name, const std::byte* norm) {
    add(name, 2.0 * state(), [this, norm] {
      return unfused::rms_norm(launch_, s_.data(), norm, n_.writable(), rows_, c_.hidden_size,
                               static_cast<float>(c_.eps));
    });
  }

  void add_event() {
    const auto each = static_cast<double>(rows_);
    const double routes = each * static_cast<double>(c_.router_width * size_of(c_.dtype));
    add_norm("rms norm, router", router_norm_);
    add_product("gemm router", *router_, rows_, c_.router_width, c_.hidden_size);
    add("swap logit", routes, [this] {
      return unfused::narrow_product(launch_, z_.data(), swap_w_, swap_b_, floats(swap_logit_), rows_, c_.router_width,
                                     1);
    });
    add("sigmoid", 8.0 * each, [this] { return unfused::sigmoid(launch_, floats(swap_logit_), rows_); });
    add("threshold", 5.0 * each,
        [this] { return unfused::threshold(launch_, floats(swap_logit_), bytes(swap_), rows_); });
    add("bank logits", routes, [this] {
      return unfused::narrow_product(launch_, z_.data(), bank_w_, bank_b_, floats(bank_logits_), rows_, c_.router_width,
                                     GATEFOLD_SWAP_FFN_BANKS);
    });
    add("argmax", 17.0 * each,
        [this] { return unfused::argmax(launch_, floats(bank_logits_), bytes(choice_), rows_); });
    add("lane of the map", 3.0 * each,
        [this] { return unfused::lane_of_map(launch_, bytes(map_), bytes(choice_), bytes(bank_), rows_); });
    add("gather ram", 2.0 * state(), [this] {
      return unfused::gather(launch_, ram_.data(), bytes(bank_), taken_.writable(), rows_, c_.hidden_size);
    });
    add("scatter s where swap", 2.0 * state(), [this] {
      return unfused::scatter(launch_, s_.data(), bytes(swap_), bytes(bank_), ram_.writable(), rows_, c_.hidden_size);
    });
    add("s where swap", 2.0 * state(),
        [this] { return unfused::take(launch_, taken_.data(), bytes(swap_), s_.writable(), rows_, c_.hidden_size); });
    add("exchange lanes", 4.0 * each, [this] {
      return unfused::exchange_lanes(launch_, bytes(swap_), bytes(choice_), bytes(bank_), bytes(map_), rows_);
    });
  }

  void add_mlp() {
    const std::int64_t F = c_.intermediate_size;
    add_norm("rms norm, MLP", ffn_norm_);
    add_product("gemm gate", *gate_product_, rows_, F, c_.hidden_size);
    add_product("gemm up", *up_product_, rows_, F, c_.hidden_size);
    add("act_and_mul", 3.0 * static_cast<double>(rows_ * F * size_of(c_.dtype)), [this] {
      act_and_mul_.run(
          {.tokens = rows_, .gate = gate_.data(), .up = up_.data(), .out = h_.writable(), .stream = launch_.stream});
      return cudaSuccess;
    });
    passes_.back().columns = F;
    add_product("gemm down", *down_, rows_, c_.hidden_size, F);
  }

  void add_collapse() {
    const std::int64_t B = data_.batch();
    const std::int64_t D = c_.hidden_size;
    const std::int64_t K = c_.collapse_heads;
    const std::int64_t Rc = c_.collapse_width;
    const auto size = static_cast<double>(size_of(c_.dtype));
    add("pool", state(), [this, B, D, K] {
      return unfused::pool(launch_, s_.data(), floats(alpha_), pooled_.writable(), B, c_.cores, K, D);
    });
    add("basis", static_cast<double>(K * Rc * D) * size,
        [this, B, D, K, Rc] { return unfused::collapse(launch_, basis_, pooled_.data(), q_.writable(), B, K, Rc, D); });
    add("silu", 2.0 * static_cast<double>(B * Rc) * size,
        [this, B, Rc] { return unfused::silu(launch_, q_.writable(), B * Rc); });
    add_product("gemm decoder", *decoder_, B, D, Rc);
  }

  // On the data of a step. What it leaves is undone: the state is that of the beginning again.
  void tune() {
    step();
    for (Product* p : {router_.get(), gate_product_.get(), up_product_.get(), down_.get(), decoder_.get()}) {
      p->gemm.tune(p->x, p->w, p->out, launch_.stream);
    }
    backend_.upload(ram_.writable(), {data_.ram.data(), data_.ram.size()});
    backend_.upload(map_.writable(), std::as_bytes(std::span(data_.stream_map)));
  }

  static float* floats(const DeviceBuffer& buffer) { return reinterpret_cast<float*>(buffer.writable()); }
  static std::uint8_t* bytes(const DeviceBuffer& buffer) { return reinterpret_cast<std::uint8_t*>(buffer.writable()); }

  const SwapFfnData& data_;
  Backend& backend_;
  const SwapFfnDesc& c_;
  std::int64_t rows_;
  unfused::Launch launch_;
  Plan act_and_mul_;
  std::deque<DeviceBuffer> weights_;
  DeviceBuffer scale_, shift_, alpha_;
  DeviceBuffer x_, ram_, map_, s_, n_, taken_, z_, gate_, up_, h_, pooled_, q_, delta_;
  DeviceBuffer swap_logit_, bank_logits_, swap_, choice_, bank_;
  const std::byte *router_norm_ = nullptr, *ffn_norm_ = nullptr, *swap_w_ = nullptr, *swap_b_ = nullptr,
                  *bank_w_ = nullptr, *bank_b_ = nullptr, *basis_ = nullptr;
  std::unique_ptr<Product> router_, gate_product_, up_product_, down_, decoder_;
};

}  // namespace

std::unique_ptr<UnfusedSwapFfn> make_unfused_swap_ffn_on_cuda(const SwapFfnData& data, Backend& backend) {
  return std::make_unique<UnfusedOnCuda>(data, backend);
}

}  // namespace gatefold::cli
