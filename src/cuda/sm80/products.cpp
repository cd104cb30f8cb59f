#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "cuda/family/products.hpp"
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

// Sizes are counted in 31 bits, with room for what the loads run ahead and a tile past the last column.
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max() - 4096;

struct Family {
  using Kernel = sm80::Kernel;
  using Machine = sm80::Machine;

  std::string_view implementation;
  Gating gating;  // of gate_up

  std::string_view name() const { return implementation; }

  std::vector<Kernel> compiled(const Problem& p) const {
    return sm80::kernels(p.op, p.types.x, p.op == Op::gate_up ? gating : Gating::none);
  }

  bool takes_row_scale(Op /*op*/) const { return false; }
  bool holds_back_the_next(const Problem& /*problem*/) const { return false; }  // they let it begin before they wait
  bool batch_invariant() const { return false; }

  std::string name_of(const Kernel& kernel) const { return sm80::name(kernel.config); }

  // gemm_gated's gate values and every output go element by element where they must.
  CopiedTensors copied(Op op) const { return {.gate = op == Op::gate_up}; }

  std::string refusal(const Problem& p) const {
    if (p.hidden_size * size_of(p.types.x) > largest_size) {
      return concat("hidden_size ", p.hidden_size, ": a row of 2^31 bytes or more");
    }
    if (p.intermediate_size > largest_size) return concat("intermediate_size ", p.intermediate_size, " exceeds 2^31");
    return {};
  }

  bool fits(const Kernel& kernel, const Problem& p) const { return fits_layout(kernel.config, p); }

  std::string nothing_fits(const Problem& p) const {
    return concat("interleaved by ", p.layout.block, " rows, which none of its kernels can follow");
  }

  Verdict verdict(std::span<const Kernel> kernels, const Problem& /*problem*/) const {
    const auto least = std::ranges::min(kernels, {}, [](const Kernel& k) { return k.config.shared_bytes(); });
    return require_shared_memory(
        static_cast<std::size_t>(least.config.shared_bytes()),
        require_capability(80, no_upper_capability, "Ampere and newer: asynchronous copies and mma.sync"));
  }

  std::size_t workspace_size(std::span<const Kernel> /*kernels*/, const Problem& /*problem*/,
                             std::int64_t /*max_tokens*/) const {
    return 0;
  }

  // No tile has fewer than 64 tokens or columns, and their number has 31 bits.
  std::int64_t most_tokens(const Problem& p) const {
    const std::int64_t columns = p.intermediate_size / 64 + 2;
    return std::numeric_limits<std::int32_t>::max() / columns * 64;
  }

  Machine machine_of(const DeviceProperties& device, std::span<const Kernel> /*kernels*/) const {
    return {device.multiprocessors, device.shared_memory_per_block, device.capability};
  }

  const Kernel* choose(std::span<const Kernel> kernels, const Problem& p, std::int64_t tokens,
                       const Machine& machine) const {
    return sm80::choose(kernels, p, tokens, machine);
  }

  std::string describe(const Kernel& kernel, const Problem& p, std::int64_t tokens, const Machine& machine) const {
    const Config& config = kernel.config;
    const Division division = division_on(machine, config, p, tokens);
    if (division.narrow_n == 0) return to_string(config);
    return concat(to_string(config), ", the last columns in tiles of ", config.tile_m, "x",
                  config.tile_n / 3 * division.thirds);
  }

  std::string nothing_runs(std::span<const Kernel> /*kernels*/) const {
    return "none of sm80's kernels that were requested runs there";
  }
};

const FamilyProducts<Family> groups_of_eight{Family{"sm80", Gating::groups_of_eight}};
const FamilyProducts<Family> even_odd{Family{"sm80_even_odd", Gating::even_odd}};

}  // namespace
}  // namespace sm80

const Implementation* sm80_products() { return &sm80::groups_of_eight; }
const Implementation* sm80_even_odd_gate_up() { return &sm80::even_odd; }

}  // namespace gatefold::cuda
