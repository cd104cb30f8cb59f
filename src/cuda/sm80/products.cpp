#include <algorithm>
#include <limits>
#include <vector>

#include "cuda/common/executor.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm80/cost_model.hpp"
#include "cuda/sm80/layout_fit.hpp"

namespace gatefold::cuda {
namespace sm80 {

std::vector<Kernel> kernels(Op op, DType dtype, Gating gating) {
  std::vector<std::span<const Kernel>> families{fp32_kernels()};
  if (dtype == DType::bf16) families = {tall_bf16_kernels(), large_bf16_kernels(), small_bf16_kernels()};
  if (dtype == DType::fp16) families = {tall_fp16_kernels(), large_fp16_kernels(), small_fp16_kernels()};
  std::vector<Kernel> result;
  for (const auto family : families) {
    std::ranges::copy_if(family, std::back_inserter(result),
                         [&](const Kernel& k) { return k.config.op == op && k.config.gating == gating; });
  }
  return result;
}

namespace {

constexpr int alignment = 16;  // bytes, of the operands' addresses and strides: what cp.async copies

// Sizes are counted in 31 bits, with room for what the loads run ahead and a tile past the last column.
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max() - 4096;

// So many tokens that tiles can be counted in 31 bits, whichever kernel is taken: no tile has fewer than 64 tokens or
// columns.
std::int64_t most_tokens(const Problem& p) {
  const std::int64_t columns = p.intermediate_size / 64 + 2;
  return std::numeric_limits<std::int32_t>::max() / columns * 64;
}

Machine machine_of(const DeviceProperties& device) {
  return {device.multiprocessors, device.shared_memory_per_block, device.capability};
}

class Products final : public DeviceExecutor {
 public:
  Products(const Problem& problem, std::vector<Kernel> kernels)
      : DeviceExecutor(problem), kernels_(std::move(kernels)) {}

  bool accepts(const Operands& o) const override {
    const auto aligned = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; };
    // gemm_gated's gate values and every output go element by element where they must.
    return aligned(o.x) && aligned(o.up) && (problem().op != Op::gate_up || aligned(o.gate));
  }

  std::string describe(std::int64_t tokens) const override {
    if (devices().list.empty()) return {};
    const Machine machine = machine_of(devices().list.front());
    const Kernel* kernel = choose(kernels_, problem(), tokens, machine);
    if (kernel == nullptr) return {};
    const Config& config = kernel->config;
    const Division division = division_on(machine, config, problem(), tokens);
    if (division.narrow_n == 0) return to_string(config);
    return concat(to_string(config), ", the last columns in tiles of ", config.tile_m, "x",
                  config.tile_n / 3 * division.thirds);
  }

 private:
  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    const Kernel* kernel = choose(kernels_, problem(), operands.tokens, machine_of(device));
    if (kernel == nullptr) {
      return unsupported("device: ", device.index, " (", device.name, ") of compute capability ",
                         device.capability / 10, ".", device.capability % 10, ", with ", device.shared_memory_per_block,
                         " bytes of shared memory for a block: none of sm80's kernels that were asked for runs there");
    }
    return kernel->launch(problem(), operands, device, stream);
  }

  std::vector<Kernel> kernels_;
};

Verdict no(std::string reason) { return {false, std::move(reason)}; }

// A leading dimension that is no multiple of 16 bytes though its rows are copied in such pieces, or null.
const char* unaligned_stride(const Problem& p) {
  const auto unaligned = [&](std::int64_t ld) {
    return ld * static_cast<std::int64_t>(size_of(p.dtype)) % alignment != 0;
  };
  if (unaligned(p.ld_x)) return "ld_x";
  if (p.op == Op::gate_up && unaligned(p.ld_gate)) return "ld_gate";
  if (unaligned(p.ld_up)) return "ld_up";
  return nullptr;
}

// The least shared memory that some kernel of the list takes.
std::size_t least_shared_bytes(const std::vector<Kernel>& list) {
  return static_cast<std::size_t>(
      std::ranges::min(list, {}, [](const Kernel& k) { return k.config.shared_bytes(); }).config.shared_bytes());
}

class Sm80Products final : public Implementation {
 public:
  Sm80Products(std::string_view name, Gating gating) : name_(name), gating_(gating) {}

  std::string_view name() const override { return name_; }

  Verdict supports(const Problem& p) const override {
    const std::vector<Kernel> list = family_of(p);
    if (list.empty()) return no(concat("not compiled for ", to_string(p.op), " in ", to_string(p.dtype)));
    if (p.biases.any()) return no("takes no biases yet");
    if (p.row_scale) return no("takes no row_scale");
    if (p.hidden_size == 0) return no("needs hidden_size > 0");
    if (p.hidden_size * static_cast<std::int64_t>(size_of(p.dtype)) > largest_size) {
      return no(concat("hidden_size ", p.hidden_size, ": a row of 2^31 bytes or more"));
    }
    if (p.intermediate_size > largest_size)
      return no(concat("intermediate_size ", p.intermediate_size, " exceeds 2^31"));
    if (const char* stride = unaligned_stride(p)) return no(concat(stride, ": not a multiple of 16 bytes"));
    Verdict verdict = require_shared_memory(
        least_shared_bytes(list),
        require_capability(80, no_upper_capability, "Ampere and newer: asynchronous copies and mma.sync"));
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
      if (fits_layout(kernel.config, p)) names.push_back(sm80::name(kernel.config));
    }
    return names;
  }

  std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view kernel) const override {
    std::vector<Kernel> family = family_of(problem);
    std::erase_if(family, [&](const Kernel& k) { return sm80::name(k.config) != kernel; });
    return std::make_unique<Products>(problem, std::move(family));
  }

 private:
  std::vector<Kernel> family_of(const Problem& p) const {
    return sm80::kernels(p.op, p.dtype, p.op == Op::gate_up ? gating_ : Gating::none);
  }

  std::string_view name_;
  Gating gating_;
};

const Sm80Products groups_of_eight("sm80", Gating::groups_of_eight);
const Sm80Products even_odd("sm80_even_odd", Gating::even_odd);

}  // namespace
}  // namespace sm80

const Implementation* sm80_products() { return &sm80::groups_of_eight; }
const Implementation* sm80_even_odd_gate_up() { return &sm80::even_odd; }

}  // namespace gatefold::cuda
