#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "core/arithmetic.hpp"
#include "cuda/family/few_tokens.hpp"
#include "cuda/family/products.hpp"
#include "cuda/implementations.hpp"
#include "cuda/sm90_decode/choice.hpp"

namespace gatefold::cuda {
namespace sm90_decode {
namespace {

// Where sm90 cannot take over, it is chosen for so many tokens.
constexpr std::int64_t most_tokens_wanted = 64;

constexpr std::int64_t chunk = CopiedTensors::bytes / 2;  // elements

// sm90 stores rows in pieces of 16 bytes.
bool suits_larger_tiles(const Problem& p) { return p.intermediate_size % chunk == 0 && p.ld_out % chunk == 0; }

std::int64_t most_tokens_of(const Problem& p) {
  return suits_larger_tiles(p) ? FewTokens::first_of_sm90(p) - 1 : most_tokens_wanted;
}

constexpr std::int64_t largest_coordinate = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t largest_stride = (std::int64_t{1} << 40) - 1;  // bytes, in a descriptor

Product product_of(Op op) { return op == Op::gemm ? Product::gemm : Product::gate_up; }

struct Family {
  using Kernel = sm90_decode::Kernel;
  using Machine = ResidentClusters;

  std::string_view name() const { return "sm90_decode"; }

  std::vector<Kernel> compiled(const Problem& p) const {
    if (p.op != Op::gemm && p.op != Op::gate_up) return {};
    std::span<const Kernel> list;
    if (p.types.x == DType::bf16) list = bf16_kernels(product_of(p.op));
    if (p.types.x == DType::fp16) list = fp16_kernels(product_of(p.op));
    std::vector<Kernel> kernels(list.begin(), list.end());
    // Other slabs are cut otherwise, which is another order of the sums.
    if (p.batch_invariant) std::erase_if(kernels, [](const Kernel& k) { return k.config.slab != whole_slab; });
    return kernels;
  }

  bool takes_row_scale(Op /*op*/) const { return false; }
  bool holds_back_the_next(const Problem& /*problem*/) const { return true; }
  bool batch_invariant() const { return true; }

  std::string name_of(const Kernel& kernel) const { return concat(kernel.config.rows(), "x", kernel.config.tokens); }

  // By the copy engine, whose descriptors hold multiples of 16 bytes. The output is stored element by element.
  CopiedTensors copied(Op op) const { return {.gate = op == Op::gate_up}; }

  std::string refusal(const Problem& p) const {
    if (p.hidden_size % chunk != 0) {
      return concat("hidden_size ", p.hidden_size, " is not a multiple of ", chunk, " elements (16 bytes)");
    }
    if (std::max(p.hidden_size, p.intermediate_size) > largest_coordinate - Config{}.rows()) {
      return "a size exceeds 2^31 - 1";
    }
    if (2 * p.intermediate_size > largest_stride / (size_of(p.types.weights) * std::max(p.ld_gate, p.ld_up))) {
      return "one half of the weights spans more than 2^40 bytes";
    }
    if (p.ld_x > largest_stride / size_of(p.types.x)) return concat("ld_x: ", p.ld_x, " elements exceed 2^40 bytes");
    return {};
  }

  // A slab of 64 rows is a box of the copy engine: whole blocks of the layout, or a part of one.
  bool fits(const Kernel& kernel, const Problem& p) const { return divides(p, kernel.config.slab); }
  std::string nothing_fits(const Problem& p) const {
    return concat("interleaved by ", p.layout.block, " rows, neither a divisor nor a multiple of ", whole_slab);
  }

  // sm_90a code runs on compute capability 9.0 alone.
  Verdict verdict(std::span<const Kernel> /*kernels*/, const Problem& p) const {
    Verdict verdict = require_capability(90, 90, "Hopper, for few tokens: copy engine and warpgroup MMA");
    if (p.batch_invariant && suits_larger_tiles(p)) {  // sm90 takes all numbers of tokens
      verdict.min_tokens = 1;
      verdict.max_tokens = 0;
      return verdict;
    }
    verdict.min_tokens = FewTokens::first_of_sm90_decode(p);
    verdict.max_tokens = most_tokens_of(p);
    return verdict;
  }

  std::size_t workspace_size(std::span<const Kernel> /*kernels*/, const Problem& /*problem*/,
                             std::int64_t /*max_tokens*/) const {
    return 0;
  }

  // So many that tiles and tokens are counted in 31 bits.
  std::int64_t most_tokens(const Problem& p) const {
    const std::int64_t rows =
        std::max<std::int64_t>(1, row_tiles(product_of(p.op), p, std::ranges::min(slab_heights(low_slab))));
    return std::min(largest_coordinate - 64, (largest_coordinate - 64) / rows * 8);
  }

  Machine machine_of(const DeviceProperties& device, std::span<const Kernel> kernels) const {
    return kernels.front().resident_clusters(device);
  }

  const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                       const Machine& machine) const {
    if (std::ranges::all_of(machine, [](int clusters) { return clusters == 0; })) return nullptr;
    return &sm90_decode::choose(kernels, problem, tokens);
  }

  std::string describe(const Kernel& kernel, const Problem& p, std::int64_t /*tokens*/, const Machine& machine) const {
    const Cut cut = cut_of(kernel.config, p, machine);
    return concat(name_of(kernel), ", ", Config::stages, " stages",
                  cut.slab_rows != kernel.config.slab ? concat(", slabs of ", cut.slab_rows, " rows") : "",
                  cut.split > 1 ? concat(", sums divided by ", cut.split) : "");
  }

  std::string nothing_runs(std::span<const Kernel> /*kernels*/) const {
    return "none of the kernels for few tokens runs there";
  }
};

const FamilyProducts<Family> instance{Family{}};

}  // namespace
}  // namespace sm90_decode

const Implementation* sm90_decode_products() { return &sm90_decode::instance; }

}  // namespace gatefold::cuda
