#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/implementation.hpp"
#include "cuda/common/executor.hpp"
#include "cuda/family/choices.hpp"

// What a family of kernels for gemm, gemm_gated and gate_up does on the host, whichever its architecture: what it
// takes, its kernels by name, one of them forced, the choice among them, the limit of tokens, the launch.
//
// A Family says what differs:
//     Kernel                          one that is compiled: config, launch, ..
//     Machine                         what the choice knows of a device
//     name()                          of the implementation
//     compiled(problem)               the kernels for its op and element type, best known first
//     name_of(kernel)                 what --impl "family:NAME" forces
//     takes_row_scale(op)             whether they multiply each token's sums by its factor
//     holds_back_the_next(problem)    whether its kernels wait for the one before them and then let the next one begin
//     batch_invariant()               whether a row's bits are the same by each of its kernels, in any batch
//     copied(op)                      the tensors that are copied in pieces of 16 bytes
//     refusal(problem)                why none of its kernels can take these sizes and strides, or ""
//     fits(kernel, problem)           whether this one can, and
//     nothing_fits(problem)           what to say where none can
//     verdict(kernels, problem)       on which devices, for how many tokens
//     workspace_size(kernels, problem, max_tokens)             the most bytes that a run of 1 ... max_tokens needs
//     most_tokens(problem)            so many that tiles can be counted, whichever kernel is taken
//     machine_of(device, kernels)     the device is current
//     choose(kernels, problem, tokens, machine)                the kernel of least time, or null
//     describe(kernel, problem, tokens, machine)               for `gatefold explain`
//     nothing_runs(kernels)           what to say where choose gives none: "none of .. runs there"
namespace gatefold::cuda {

// Which of a run's tensors must begin at multiples of 16 bytes, and their rows too.
struct CopiedTensors {
  static constexpr int bytes = 16;

  bool x = true;
  bool gate = false;
  bool up = true;
  bool out = false;
  // One descriptor holds both halves of the weights, so that less than so many bytes lie between them, and some: a
  // distance of 0 is no stride. 0: each has its own.
  std::int64_t reach = 0;

  bool accepts(const Operands& o) const {
    const std::array<std::pair<bool, const std::byte*>, 4> tensors{
        {{x, o.x}, {gate, o.gate}, {up, o.up}, {out, o.out}}};
    return within_reach(o) && std::ranges::all_of(tensors, [](const auto& tensor) {
             return !tensor.first || reinterpret_cast<std::uintptr_t>(tensor.second) % bytes == 0;
           });
  }

  bool within_reach(const Operands& o) const {
    if (reach == 0 || o.gate == nullptr || o.up == nullptr) return true;
    const std::int64_t apart = std::max(o.gate, o.up) - std::min(o.gate, o.up);
    return apart > 0 && apart < reach;
  }

  // Of which the rows do not, or null.
  const char* unaligned_stride(const Problem& p) const {
    const auto unaligned = [](std::int64_t ld, DType type) { return ld * size_of(type) % bytes != 0; };
    const DType gate_type = p.op == Op::gemm_gated ? p.types.x : p.types.weights;
    if (x && unaligned(p.ld_x, p.types.x)) return "ld_x";
    if (gate && unaligned(p.ld_gate, gate_type)) return "ld_gate";
    if (up && unaligned(p.ld_up, p.types.weights)) return "ld_up";
    if (out && unaligned(p.ld_out, p.types.out)) return "ld_out";
    return nullptr;
  }
};

template <class Family>
class FamilyExecutor final : public DeviceExecutor {
 public:
  using Kernel = typename Family::Kernel;
  using Machine = typename Family::Machine;

  FamilyExecutor(const Family& family, const Problem& problem, std::vector<Kernel> kernels)
      : DeviceExecutor(problem),
        family_(family),
        kernels_(std::move(kernels)),
        copied_(family.copied(problem.op)),
        most_tokens_(family.most_tokens(problem)),
        choices_(devices().list.size()) {
    if (kernels_.size() > Choices::most_kernels) {
      throw StatusError(
          {GATEFOLD_ERROR_INTERNAL, concat(kernels_.size(), " kernels, a family has at most ", Choices::most_kernels)});
    }
  }

  std::size_t workspace_size(std::int64_t max_tokens) const override {
    return family_.workspace_size(kernels_, problem(), max_tokens);
  }

  bool accepts(const Operands& operands) const override { return copied_.accepts(operands); }

  bool holds_back_the_next(const Operands& /*operands*/) const override {
    return family_.holds_back_the_next(problem());
  }

  std::string describe(std::int64_t tokens) const override {
    if (devices().list.empty()) return {};
    const DeviceProperties& device = devices().list.front();
    const DeviceScope scope(device.index);
    const Kernel* kernel = nullptr;
    if (!choose(tokens, device, kernel).ok()) return {};
    return family_.describe(*kernel, problem(), tokens, family_.machine_of(device, kernels_));
  }

  // The kernel for a run of so many tokens on a device, the current one.
  Status choose(std::int64_t tokens, const DeviceProperties& device, const Kernel*& kernel) const {
    if (tokens > most_tokens_) {
      return unsupported("tokens: ", tokens, ", ", family_.name(), " takes at most ", most_tokens_,
                         " with intermediate_size ", problem().intermediate_size);
    }
    const int index = choices_(device.index, tokens, [&](std::int64_t last_of_range) {
      const Machine machine = family_.machine_of(device, kernels_);
      const Kernel* best = family_.choose(kernels_, problem(), last_of_range, machine);
      return best == nullptr ? -1 : static_cast<int>(best - kernels_.data());
    });
    if (index < 0) {
      return unsupported("device: ", device.index, " (", device.name, ") of compute capability ",
                         device.capability / 10, ".", device.capability % 10, ", with ", device.shared_memory_per_block,
                         " bytes of shared memory for a block: ", family_.nothing_runs(kernels_));
    }
    kernel = &kernels_[static_cast<std::size_t>(index)];
    return {};
  }

 private:
  Status launch(const Operands& operands, const DeviceProperties& device, cudaStream_t stream) const override {
    const Kernel* kernel = nullptr;
    if (Status status = choose(operands.tokens, device, kernel); !status.ok()) return status;
    return kernel->launch(problem(), operands, device, stream);
  }

  Family family_;
  std::vector<Kernel> kernels_;
  CopiedTensors copied_;
  std::int64_t most_tokens_;
  mutable Choices choices_;
};

template <class Family>
class FamilyProducts final : public Implementation {
 public:
  using Kernel = typename Family::Kernel;

  explicit FamilyProducts(Family family) noexcept : family_(std::move(family)) {}

  std::string_view name() const override { return family_.name(); }

  Verdict supports(const Problem& p) const override {
    if (std::string reason = refusal(p); !reason.empty()) return {false, std::move(reason)};
    Verdict verdict = family_.verdict(fitting(p), p);
    verdict.max_tokens = std::min(verdict.max_tokens, family_.most_tokens(p));
    verdict.every_pointer = false;
    return verdict;
  }

  bool batch_invariant() const override { return family_.batch_invariant(); }

  std::unique_ptr<Executor> prepare(const Problem& problem) const override {
    return std::make_unique<FamilyExecutor<Family>>(family_, problem, fitting(problem));
  }

  std::vector<std::string> kernels(const Problem& problem) const override {
    std::vector<std::string> names;
    for (const Kernel& kernel : fitting(problem)) names.push_back(family_.name_of(kernel));
    return names;
  }

  std::unique_ptr<Executor> prepare_kernel(const Problem& problem, std::string_view kernel) const override {
    std::vector<Kernel> one = fitting(problem);
    std::erase_if(one, [&](const Kernel& k) { return family_.name_of(k) != kernel; });
    return std::make_unique<FamilyExecutor<Family>>(family_, problem, std::move(one));
  }

 private:
  std::string refusal(const Problem& p) const {
    if (!p.types.alike()) return "takes elements of one type only";
    if (family_.compiled(p).empty()) return concat("not compiled for ", to_string(p.op), " in ", to_string(p.types.x));
    if (p.row_scale && !family_.takes_row_scale(p.op)) return "takes no row_scale";
    if (p.hidden_size == 0) return "needs hidden_size > 0";
    if (std::string reason = family_.refusal(p); !reason.empty()) return reason;
    if (const char* stride = family_.copied(p.op).unaligned_stride(p)) {
      return concat(stride, ": not a multiple of ", CopiedTensors::bytes, " bytes");
    }
    return fitting(p).empty() ? family_.nothing_fits(p) : "";
  }

  std::vector<Kernel> fitting(const Problem& problem) const {
    std::vector<Kernel> kernels = family_.compiled(problem);
    std::erase_if(kernels, [&](const Kernel& kernel) { return !family_.fits(kernel, problem); });
    return kernels;
  }

  Family family_;
};

}  // namespace gatefold::cuda
