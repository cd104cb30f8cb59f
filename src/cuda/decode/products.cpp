#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "cuda/decode/choice.hpp"
#include "cuda/family/few_tokens.hpp"
#include "cuda/family/products.hpp"
#include "cuda/implementations.hpp"

namespace gatefold::cuda {
namespace decode {
namespace {

constexpr std::int64_t chunk = CopiedTensors::bytes / 2;  // elements

// Sums are counted in 31 bits, with room for what the loads run ahead.
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max() / 2 - 4096;

struct Family {
  using Kernel = decode::Kernel;
  using Machine = decode::Machine;

  std::string_view name() const { return "decode"; }

  std::vector<Kernel> compiled(const Problem& p) const {
    if (p.op != Op::gemm && p.op != Op::gate_up) return {};
    const Product product = p.op == Op::gemm ? Product::gemm : Product::gate_up;
    std::span<const Kernel> list;
    if (p.types.x == DType::bf16) list = bf16_kernels(product);
    if (p.types.x == DType::fp16) list = fp16_kernels(product);
    return {list.begin(), list.end()};
  }

  bool takes_row_scale(Op /*op*/) const { return false; }
  bool holds_back_the_next(const Problem& /*problem*/) const { return true; }
  bool batch_invariant() const { return true; }

  std::string name_of(const Kernel& kernel) const {
    const Config& c = kernel.config;
    return c.resident_runs > 0 ? concat(c.rows(), "x", c.tokens(), " resident ", c.resident_elements())
                               : concat(c.rows(), "x", c.tokens(), c.stages == 1 ? " single stage" : "");
  }

  CopiedTensors copied(Op op) const { return {.gate = op == Op::gate_up}; }

  std::string refusal(const Problem& p) const {
    if (p.hidden_size % chunk != 0) {
      return concat("hidden_size ", p.hidden_size, " is not a multiple of ", chunk, " elements (16 bytes)");
    }
    if (p.hidden_size > largest_size) return concat("hidden_size ", p.hidden_size, " exceeds 2^30");
    if (p.intermediate_size > largest_size) return concat("intermediate_size ", p.intermediate_size, " exceeds 2^30");
    return {};
  }

  bool fits(const Kernel& kernel, const Problem& problem) const { return kernel.config.takes(problem.hidden_size); }
  std::string nothing_fits(const Problem& /*problem*/) const { return {}; }

  Verdict verdict(std::span<const Kernel> kernels, const Problem& /*problem*/) const {
    const int least =
        std::ranges::min(kernels, {}, [](const Kernel& k) { return k.config.shared_bytes(); }).config.shared_bytes();
    Verdict verdict = require_shared_memory(
        static_cast<std::size_t>(least), require_capability(least_capability, no_upper_capability, "for few tokens"));
    verdict.max_tokens = most_tokens_of_decode;
    return verdict;
  }

  std::size_t workspace_size(std::span<const Kernel> /*kernels*/, const Problem& /*problem*/,
                             std::int64_t /*max_tokens*/) const {
    return 0;
  }

  // Forced, it takes any number: a launch for every 65535 blocks of tokens.
  std::int64_t most_tokens(const Problem& /*problem*/) const { return std::numeric_limits<std::int64_t>::max(); }

  Machine machine_of(const DeviceProperties& device, std::span<const Kernel> /*kernels*/) const {
    return {device.shared_memory_per_block, device.multiprocessors};
  }

  const Kernel* choose(std::span<const Kernel> kernels, const Problem& problem, std::int64_t tokens,
                       const Machine& machine) const {
    return decode::choose(kernels, problem, tokens, machine);
  }

  std::string describe(const Kernel& kernel, const Problem& /*problem*/, std::int64_t /*tokens*/,
                       const Machine& /*machine*/) const {
    return name_of(kernel);
  }

  std::string nothing_runs(std::span<const Kernel> /*kernels*/) const {
    return "the decode kernel that was requested needs more";
  }
};

const FamilyProducts<Family> instance{Family{}};

}  // namespace
}  // namespace decode

const Implementation* decode_products() { return &decode::instance; }

}  // namespace gatefold::cuda
