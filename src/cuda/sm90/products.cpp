#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>
#include <vector>

#include "core/arithmetic.hpp"
#include "cuda/family/few_tokens.hpp"
#include "cuda/family/products.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "cuda/sm90/families.hpp"
#include "cuda/sm90/geometry.hpp"
#include "cuda/sm90/kernels_by_request.hpp"

namespace gatefold::cuda {
namespace sm90 {

std::span<const Kernel> kernels(DType dtype, Product product) {
  if (dtype == DType::fp32) return {};
  const bool bf16 = dtype == DType::bf16;
  switch (product) {
    case Product::plain: return bf16 ? bf16_plain_kernels() : fp16_plain_kernels();
    case Product::gate_up: return bf16 ? bf16_gated_kernels() : fp16_gated_kernels();
    case Product::gated_by_memory: return bf16 ? bf16_gated_by_memory_kernels() : fp16_gated_by_memory_kernels();
    case Product::parts: return bf16 ? bf16_kernels_in_parts() : fp16_kernels_in_parts();
    case Product::gated_parts: return bf16 ? bf16_gated_kernels_in_parts() : fp16_gated_kernels_in_parts();
  }
  return {};
}

namespace {

constexpr std::int64_t largest_stride = (std::int64_t{1} << 40) - 1;  // bytes, in a descriptor

Product product_of(Op op) {
  if (op == Op::gate_up) return Product::gate_up;
  return op == Op::gemm_gated ? Product::gated_by_memory : Product::plain;
}

// The tokens below are left to sm90_decode and decode, where those can take the problem.
std::int64_t least_tokens_wanted(const Problem& p) {
  constexpr std::int64_t longest_sums_of_decode = std::int64_t{1} << 29;
  const bool left_to_decode = (p.op == Op::gemm || p.op == Op::gate_up) && !p.row_scale && p.hidden_size % 8 == 0 &&
                              std::max(p.hidden_size, p.intermediate_size) <= longest_sums_of_decode;
  return left_to_decode ? std::min(FewTokens::first_of_sm90(p), most_tokens_of_decode + 1) : 0;
}

struct Family {
  using Kernel = sm90::Kernel;
  using Machine = sm90::Machine;

  std::string_view name() const { return "sm90"; }

  std::vector<Kernel> compiled(const Problem& p) const {
    const bool scaled = p.row_scale && p.op == Op::gate_up;
    const std::span<const Kernel> all =
        scaled ? row_scale_kernels_of(p.types.x) : sm90::kernels(p.types.x, product_of(p.op));
    std::vector<Kernel> kernels(all.begin(), all.end());
    if (p.op == Op::gate_up && !p.row_scale && !p.weights_settled) {
      std::ranges::copy(sm90::kernels(p.types.x, Product::gated_parts), std::back_inserter(kernels));
    }
    if (p.op == Op::gemm) {
      std::ranges::copy(divided_plain_kernels_of(p.types.x, p.weights_settled), std::back_inserter(kernels));
      if (!p.weights_settled) {
        std::ranges::copy(sm90::kernels(p.types.x, Product::parts), std::back_inserter(kernels));
        std::ranges::copy(adding_kernels_of(p.types.x), std::back_inserter(kernels));
      }
    }
    return kernels;
  }

  bool takes_row_scale(Op op) const { return op == Op::gate_up; }
  // The kernels for settled weights let it begin before they wait, and so does the one that adds up gemm's parts.
  bool holds_back_the_next(const Problem& p) const { return p.op != Op::gemm && !p.weights_settled; }
  bool batch_invariant() const { return true; }  // of such a problem `fits` leaves kernels with the same sums

  std::string name_of(const Kernel& kernel) const { return sm90::name(kernel.config); }

  // By the copy engine, whose descriptors hold multiples of 16 bytes: the output too.
  // Alternating rows have one descriptor for both halves.
  CopiedTensors copied(Op op) const {
    return {.gate = op != Op::gemm, .out = true, .reach = op == Op::gate_up ? largest_stride + 1 : 0};
  }

  std::string refusal(const Problem& p) const {
    // The copy engine clips a store in pieces of 16 bytes: the row's last would reach past column F.
    if (p.intermediate_size % 8 != 0) {
      return concat("intermediate_size ", p.intermediate_size, " is not a multiple of 8");
    }
    if (std::max(p.hidden_size, p.intermediate_size) > largest_coordinate) return "a size exceeds 2^31 - 1";
    if (p.row_scale && !p.weights_settled) return "row_scale: the weights may still be written";
    if (2 * p.intermediate_size > largest_stride / (size_of(p.types.weights) * std::max(p.ld_gate, p.ld_up))) {
      return "one half of the weights spans more than 2^40 bytes";
    }
    for (const auto& [stride, ld, type] :
         {std::tuple{"ld_x", p.ld_x, p.types.x}, std::tuple{"ld_out", p.ld_out, p.types.out}}) {
      if (ld > largest_stride / size_of(type)) return concat(stride, ": ", ld, " elements exceed 2^40 bytes");
    }
    return {};
  }

  bool fits(const Kernel& kernel, const Problem& p) const { return sm90::fits(kernel.config, p); }

  std::string nothing_fits(const Problem& p) const {
    return concat("interleaved by ", p.layout.block, " rows: no tile is made of boxes of 8 rows or a multiple");
  }

  // sm_90a code runs on compute capability 9.0 alone.
  Verdict verdict(std::span<const Kernel> /*kernels*/, const Problem& p) const {
    Verdict verdict = require_capability(90, 90, "Hopper: copy engine and warpgroup MMA");
    verdict.min_tokens = least_tokens_wanted(p);
    return verdict;
  }

  std::int64_t most_tokens(const Problem& p) const { return sm90::most_tokens(p); }

  std::size_t workspace_size(std::span<const Kernel> kernels, const Problem& p, std::int64_t max_tokens) const {
    std::size_t most = 0;
    for (const Kernel& kernel : kernels) {
      if (!in_parts(kernel.config.product)) continue;
      most = std::max(most, most_bytes_of_parts(kernel.config, p, max_tokens, kernels.size() == 1));
    }
    return most;
  }

  Machine machine_of(const DeviceProperties& device, std::span<const Kernel> kernels) const {
    return sm90::machine_of(device, kernels);
  }

  const Kernel* choose(std::span<const Kernel> kernels, const Problem& p, std::int64_t tokens,
                       const Machine& machine) const {
    return sm90::choose(kernels, p, tokens, machine);
  }

  std::string describe(const Kernel& kernel, const Problem& p, std::int64_t tokens, const Machine& machine) const {
    const Config& config = kernel.config;
    const int clusters = machine.clusters(config);
    const Geometry geometry = geometry_of(config, p, tokens, clusters);
    const bool split = geometry.whole_tiles < geometry.cluster_tiles(config);
    const int legs = ceil_div(geometry.work_tiles(config), work_tiles_per_leg(config, geometry, clusters));
    const int parts = in_parts(config.product) ? parts_of(config, p, tokens, clusters)
                      : config.adds_parts      ? parts_in_any_batch(p)
                                               : 1;
    return concat(sm90::name(config), ", ", config.stages, " stages", parts > 1 ? concat(", ", parts, " parts") : "",
                  split ? ", the last round in subtiles" : "", legs > 1 ? concat(", ", legs, " launches") : "");
  }

  // All but clusters of four are held everywhere, so that where none runs only such a one was requested.
  std::string nothing_runs(std::span<const Kernel> kernels) const {
    const Config& config = kernels.front().config;
    return concat("no cluster of ", config.cluster(), " thread blocks, which ", sm90::name(config), " needs");
  }
};

const FamilyProducts<Family> implementation{Family{}};

}  // namespace
}  // namespace sm90

const Implementation* sm90_products() { return &sm90::implementation; }

}  // namespace gatefold::cuda
