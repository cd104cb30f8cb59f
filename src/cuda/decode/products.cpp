#include <algorithm>
#include <limits>
#include <vector>

#include "cuda/common/executor.hpp"
#include "cuda/decode/kernels.hpp"
#include "cuda/implementations.hpp"

namespace gatefold::cuda {
namespace decode {
namespace {

constexpr int alignment = 16;                  // bytes: what cp.async copies
constexpr std::int64_t chunk = alignment / 2;  // elements

// For how many tokens it is chosen: none, until all of its tests and the sanitizers have been seen to pass on a GPU.
constexpr std::int64_t least_tokens = 1;
constexpr std::int64_t most_tokens = 0;

// Sums are counted in 31 bits, with room for what the loads run ahead.
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max() / 2 - 4096;

std::span<const Kernel> kernels_of(const Problem& p) {
  if (p.op != Op::gemm && p.op != Op::gate_up) return {};
  const Product product = p.op == Op::gemm ? Product::gemm : Product::gate_up;
  if (p.dtype == DType::bf16) return bf16_kernels(product);
  if (p.dtype == DType::fp16) return fp16_kernels(product);
  return {};
}

std::string name(const Config& config) { return concat(config.rows(), "x", config.tokens()); }

bool fits(const Kernel& kernel, const DeviceProperties& device) {
  return static_cast<std::size_t>(kernel.config.shared_bytes()) <= device.shared_memory_per_block;
}

class Products final : public DeviceExecutor {
 public:
  Products(const Problem& problem, std::span<const Kernel> kernels) : DeviceExecutor(problem), kernels_(kernels) {}

  bool accepts(const Operands& o) const override {
    const auto aligned = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; };
    return aligned(o.x) && aligned(o.up) && (problem().op != Op::gate_up || aligned(o.gate));
  }

  std::string describe(std::int64_t tokens) const override {
    if (devices().list.empty()) return {};
    const Kernel* kernel = choose(tokens, devices().list.front());
    return kernel == nullptr ? "" : concat(decode::name(kernel->config));
  }

 private:
  // The first that takes all tokens at once, or the last: each pass reads the weights again.
  const Kernel* choose(std::int64_t tokens, const DeviceProperties& device) const {
    const Kernel* best = nullptr;
    for (const Kernel& kernel : kernels_) {
      if (!fits(kernel, device)) continue;
      best = &kernel;
      if (tokens <= kernel.config.tokens()) break;
    }
    return best;
  }

  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    const Kernel* kernel = choose(operands.tokens, device);
    if (kernel == nullptr) {
      return unsupported("device: ", device.index, " (", device.name, ") with ", device.shared_memory_per_block,
                         " bytes of shared memory for a block: the decode kernel that was asked for needs more");
    }
    return kernel->launch(problem(), operands, device, stream);
  }

  std::span<const Kernel> kernels_;
};

Verdict no(std::string reason) { return {false, std::move(reason)}; }

// A leading dimension that is no multiple of 16 bytes, or null.
const char* unaligned_stride(const Problem& p) {
  if (p.ld_x % chunk != 0) return "ld_x";
  if (p.op == Op::gate_up && p.ld_gate % chunk != 0) return "ld_gate";
  if ((p.op == Op::gemm || !p.layout.packed()) && p.ld_up % chunk != 0) return "ld_up";
  return nullptr;
}

class DecodeProducts final : public Implementation {
 public:
  std::string_view name() const override { return "decode"; }

  Verdict supports(const Problem& p) const override {
    const std::span<const Kernel> list = kernels_of(p);
    if (list.empty()) return no(concat("not compiled for ", to_string(p.op), " in ", to_string(p.dtype)));
    if (p.row_scale) return no("takes no row_scale");
    if (p.hidden_size == 0) return no("needs hidden_size > 0");
    if (p.hidden_size % chunk != 0) {
      return no(concat("hidden_size ", p.hidden_size, " is not a multiple of ", chunk, " elements (16 bytes)"));
    }
    if (p.hidden_size > largest_size) return no(concat("hidden_size ", p.hidden_size, " exceeds 2^30"));
    if (p.intermediate_size > largest_size) {
      return no(concat("intermediate_size ", p.intermediate_size, " exceeds 2^30"));
    }
    if (const char* stride = unaligned_stride(p)) return no(concat(stride, ": not a multiple of 16 bytes"));
    Verdict verdict =
        require_shared_memory(static_cast<std::size_t>(list.front().config.shared_bytes()),
                              require_capability(least_capability, no_upper_capability,
                                                 "for few tokens; not chosen until all its tests were seen on a GPU"));
    verdict.min_tokens = least_tokens;
    verdict.max_tokens = most_tokens;
    verdict.every_pointer = false;
    return verdict;
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<Products>(problem, kernels_of(problem));
  }

  std::vector<std::string> kernels(const Problem& problem) const override {
    std::vector<std::string> names;
    for (const Kernel& kernel : kernels_of(problem)) names.push_back(decode::name(kernel.config));
    return names;
  }

  std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view kernel) const override {
    const std::span<const Kernel> list = kernels_of(problem);
    const auto named = std::ranges::find(list, kernel, [](const Kernel& k) { return decode::name(k.config); });
    return std::make_unique<Products>(problem, list.subspan(static_cast<std::size_t>(named - list.begin()), 1));
  }
};

const DecodeProducts instance;

}  // namespace
}  // namespace decode

const Implementation* decode_products() { return &decode::instance; }

}  // namespace gatefold::cuda
