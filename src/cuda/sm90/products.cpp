#include <algorithm>
#include <array>
#include <utility>

#include "core/arithmetic.hpp"
#include "cuda/common/executor.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "cuda/sm90/families.hpp"
#include "cuda/sm90/geometry.hpp"

namespace gatefold::cuda {
namespace sm90 {

std::span<const Kernel> kernels(DType dtype, Product product) {
  const bool bf16 = dtype == DType::bf16;
  switch (product) {
    case Product::plain: return bf16 ? bf16_plain_kernels() : fp16_plain_kernels();
    case Product::gate_up: return bf16 ? bf16_gated_kernels() : fp16_gated_kernels();
    case Product::gated_by_memory: return bf16 ? bf16_gated_by_memory_kernels() : fp16_gated_by_memory_kernels();
  }
  return {};
}

namespace {

constexpr std::int64_t largest_stride = (std::int64_t{1} << 40) - 1;  // bytes, in a descriptor
constexpr int alignment = 16;                                         // bytes, of addresses and strides

class Products final : public DeviceExecutor {
 public:
  Products(const Problem& problem, std::span<const Kernel> kernels) : DeviceExecutor(problem), kernels_(kernels) {}

  bool accepts(const Operands& o) const override {
    const std::array<const std::byte*, 4> pointers{o.x, o.gate, o.up, o.out};
    return std::ranges::all_of(
        pointers, [](const std::byte* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0; });
  }

  std::string describe(std::int64_t tokens) const override {
    if (devices().list.empty()) return {};
    const DeviceProperties& device = devices().list.front();
    const DeviceScope scope(device.index);
    const Machine machine = machine_of(device, kernels_);
    const Kernel* kernel = choose(kernels_, problem(), tokens, machine);
    if (kernel == nullptr) return {};
    const Config& config = kernel->config;
    const int clusters = machine.clusters(config);
    const Geometry geometry = geometry_of(config, problem(), tokens, clusters);
    const bool split = geometry.whole_tiles < geometry.cluster_tiles(config);
    const int legs = ceil_div(geometry.shares(config), shares_per_leg(config, geometry, clusters));
    return concat(name(config), ", ", config.stages, " stages", split ? ", the last round in half tiles" : "",
                  legs > 1 ? concat(", ", legs, " launches") : "");
  }

 private:
  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    if (operands.tokens > most_tokens(problem())) {
      return unsupported("tokens: ", operands.tokens, ", sm90 takes at most ", most_tokens(problem()),
                         " with intermediate_size ", problem().intermediate_size);
    }
    const Kernel* kernel = choose(kernels_, problem(), operands.tokens, machine_of(device, kernels_));
    if (kernel == nullptr) {
      return unsupported("device: ", device.index, " (", device.name, ") holds no cluster of ",
                         kernels_.front().config.cluster(), " thread blocks, which ", name(kernels_.front().config),
                         " needs");
    }
    return kernel->launch(problem(), operands, device, stream);
  }

  std::span<const Kernel> kernels_;
};

Product product_of(Op op) {
  if (op == Op::gate_up) return Product::gate_up;
  return op == Op::gemm_gated ? Product::gated_by_memory : Product::plain;
}

std::span<const Kernel> family_of(const Problem& p) { return kernels(p.dtype, product_of(p.op)); }

Verdict no(std::string reason) { return {false, std::move(reason)}; }

// A leading dimension that a descriptor cannot hold, or null.
const char* unaligned_stride(const Problem& p) {
  const auto unaligned = [](std::int64_t ld) { return ld * 2 % alignment != 0; };
  if (unaligned(p.ld_x)) return "ld_x";
  if (p.op != Op::gemm && unaligned(p.ld_gate)) return "ld_gate";
  if (unaligned(p.ld_up)) return "ld_up";
  if (unaligned(p.ld_out)) return "ld_out";
  return nullptr;
}

class Sm90Products final : public Implementation {
 public:
  std::string_view name() const override { return "sm90"; }

  Verdict supports(const Problem& p) const override {
    if (p.dtype == DType::fp32) return no("takes bf16 and fp16, not fp32");
    if (p.biases.any()) return no("takes no biases yet");
    if (p.row_scale) return no("takes no row_scale");
    if (p.hidden_size == 0) return no("needs hidden_size > 0");
    // The copy engine clips a store in pieces of 16 bytes: the row's last would reach past column F.
    if (p.intermediate_size % 8 != 0)
      return no(concat("intermediate_size ", p.intermediate_size, " is not a multiple of 8"));
    if (const char* stride = unaligned_stride(p)) return no(concat(stride, ": not a multiple of 8 elements"));
    if (std::max(p.hidden_size, p.intermediate_size) > largest_coordinate) return no("a size exceeds 2^31 - 1");
    if (2 * p.intermediate_size > largest_stride / (2 * std::max(p.ld_gate, p.ld_up))) {
      return no("one half of the weights spans more than 2^40 bytes");
    }
    for (const auto& [stride, ld] : {std::pair{"ld_x", p.ld_x}, std::pair{"ld_out", p.ld_out}}) {
      if (ld > largest_stride / 2) return no(concat(stride, ": ", ld, " elements exceed 2^40 bytes"));
    }
    if (std::ranges::none_of(family_of(p), [&](const Kernel& k) { return fits(k.config, p); })) {
      return no(concat("interleaved by ", p.layout.block, " rows: no tile is made of boxes of 8 rows or a multiple"));
    }
    // sm_90a code runs on compute capability 9.0 alone.
    Verdict verdict = require_capability(90, 90, "Hopper: copy engine and warpgroup MMA");
    verdict.max_tokens = most_tokens(p);
    verdict.every_pointer = false;
    return verdict;
  }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<Products>(problem, family_of(problem));
  }

  std::vector<std::string> kernels(const Problem& p) const override {
    std::vector<std::string> names;
    for (const Kernel& kernel : family_of(p)) {
      if (fits(kernel.config, p)) names.push_back(sm90::name(kernel.config));
    }
    return names;
  }

  std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view kernel) const override {
    const auto family = family_of(problem);
    const auto one = std::ranges::find(family, kernel, [](const Kernel& k) { return sm90::name(k.config); });
    return std::make_unique<Products>(problem, family.subspan(one - family.begin(), 1));
  }
};

const Sm90Products implementation;

}  // namespace
}  // namespace sm90

const Implementation* sm90_products() { return &sm90::implementation; }

}  // namespace gatefold::cuda
