// Gatefold in C++20: gatefold.h with types, ownership and exceptions. Header-only, over the C interface.
//
//     gatefold::Plan plan({.op = GATEFOLD_OP_GATE_UP, .dtype = GATEFOLD_DTYPE_BF16, .device = GATEFOLD_DEVICE_CPU,
//                          .layout = gatefold::Layout::separate(), .activation = gatefold::Activation::silu(),
//                          .hidden_size = 4096, .intermediate_size = 14336});
//     gatefold::Workspace workspace(plan.workspace_size(T));
//     plan.run({.tokens = T, .x = x, .gate = w_gate, .up = w_up, .out = h, .workspace = workspace});
//
// The names of fields and enums, their meanings, shapes and units are gatefold.h's. Fields are added at the ends of the
// structs alone, and a program compiled against an older header runs with a newer library.
#ifndef GATEFOLD_GATEFOLD_HPP
#define GATEFOLD_GATEFOLD_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gatefold/gatefold.h"

namespace gatefold::inline v0 {

// A failure of the C interface: its status, and its message as what().
class Error : public std::runtime_error {
 public:
  Error(gatefold_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  gatefold_status status() const noexcept { return status_; }

 private:
  gatefold_status status_;
};

inline void throw_on_error(gatefold_status status) {
  if (status != GATEFOLD_SUCCESS) throw Error(status, gatefold_last_error());
}

// How gate and up lie in memory. There is no default: name one.
class Layout {
 public:
  static constexpr Layout separate() { return {GATEFOLD_LAYOUT_SEPARATE, 0}; }
  static constexpr Layout gate_up() { return {GATEFOLD_LAYOUT_GATE_UP, 0}; }
  static constexpr Layout up_gate() { return {GATEFOLD_LAYOUT_UP_GATE, 0}; }
  static constexpr Layout interleaved_gate_up(std::int64_t block) {
    return {GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP, block};
  }
  static constexpr Layout interleaved_up_gate(std::int64_t block) {
    return {GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE, block};
  }
  static constexpr Layout of(gatefold_layout kind, std::int64_t block) { return {kind, block}; }

  constexpr gatefold_layout kind() const { return kind_; }
  constexpr std::int64_t block() const { return block_; }
  constexpr bool packed() const { return kind_ != GATEFOLD_LAYOUT_SEPARATE; }

 private:
  constexpr Layout(gatefold_layout kind, std::int64_t block) : kind_(kind), block_(block) {}
  gatefold_layout kind_;
  std::int64_t block_;
};

struct Activation {
  gatefold_activation kind{};
  float limit = 0.0F;
  float alpha = 0.0F;
  float beta = 0.0F;

  static constexpr Activation silu() { return {GATEFOLD_ACTIVATION_SILU}; }
  static constexpr Activation gelu_tanh() { return {GATEFOLD_ACTIVATION_GELU_TANH}; }
  static constexpr Activation gelu_erf() { return {GATEFOLD_ACTIVATION_GELU_ERF}; }
  static constexpr Activation relu() { return {GATEFOLD_ACTIVATION_RELU}; }
  static constexpr Activation sigmoid() { return {GATEFOLD_ACTIVATION_SIGMOID}; }
  static constexpr Activation identity() { return {GATEFOLD_ACTIVATION_IDENTITY}; }
  // gpt-oss uses the defaults.
  static constexpr Activation swiglu_clamped(float limit = 7.0F, float alpha = 1.702F, float beta = 1.0F) {
    return {GATEFOLD_ACTIVATION_SWIGLU_CLAMPED, limit, alpha, beta};
  }
};

// Leading dimensions in elements; 0 means packed.
struct LeadingDimensions {
  std::int64_t x = 0;
  std::int64_t gate = 0;
  std::int64_t up = 0;
  std::int64_t down = 0;
  std::int64_t out = 0;
};

// Which bias vectors the runs are given. Of a packed layout `gate` stands for the one vector of both halves.
struct Biases {
  bool gate = false;
  bool up = false;
  bool down = false;

  constexpr bool any() const { return gate || up || down; }
  constexpr std::uint64_t bits() const {
    return (gate ? std::uint64_t{GATEFOLD_BIAS_GATE} : 0) | (up ? std::uint64_t{GATEFOLD_BIAS_UP} : 0) |
           (down ? std::uint64_t{GATEFOLD_BIAS_DOWN} : 0);
  }
};

struct Desc {
  gatefold_op op{};
  gatefold_dtype dtype{};
  gatefold_device device{};
  std::optional<Layout> layout{};          // act_and_mul, gate_up, mlp: required
  std::optional<Activation> activation{};  // every op but gemm: required
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  LeadingDimensions ld{};
  std::string implementation{};  // empty: Gatefold chooses
  Biases biases{};
  std::int64_t chunk_tokens = 0;  // mlp: so many tokens at a time; 0: all
  bool batch_invariant = false;   // the same bits for a row whatever batch it is in

  // The C description; it points into this object's implementation name.
  gatefold_desc c_desc() const {
    gatefold_desc desc{};
    desc.struct_size = sizeof desc;
    desc.op = op;
    desc.dtype = dtype;
    desc.device = device;
    if (layout) {
      desc.layout = layout->kind();
      desc.block = layout->block();
    }
    if (activation) {
      desc.activation = activation->kind;
      desc.limit = activation->limit;
      desc.alpha = activation->alpha;
      desc.beta = activation->beta;
    }
    desc.hidden_size = hidden_size;
    desc.intermediate_size = intermediate_size;
    desc.ld_x = ld.x;
    desc.ld_gate = ld.gate;
    desc.ld_up = ld.up;
    desc.ld_down = ld.down;
    desc.ld_out = ld.out;
    desc.implementation = implementation.empty() ? nullptr : implementation.c_str();
    desc.biases = biases.bits();
    desc.chunk_tokens = chunk_tokens;
    desc.flags = batch_invariant ? std::uint64_t{GATEFOLD_FLAG_BATCH_INVARIANT} : 0;
    return desc;
  }
};

// Memory of somebody else's for a run to work in.
struct WorkspaceView {
  void* data = nullptr;
  std::size_t size = 0;
};

// Aligned host memory. For a GPU allocate plan.workspace_size(...) bytes there and pass a WorkspaceView.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes)
      : data_(bytes == 0 ? nullptr : ::operator new(bytes, std::align_val_t{256})), size_(bytes) {}

  operator WorkspaceView() const { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* data) const { ::operator delete(data, std::align_val_t{256}); }
  };
  std::unique_ptr<void, Free> data_;
  std::size_t size_;
};

struct Args {
  std::int64_t tokens = 0;
  const void* x = nullptr;
  const void* gate = nullptr;
  const void* up = nullptr;
  const void* down = nullptr;
  void* out = nullptr;
  WorkspaceView workspace{};
  void* stream = nullptr;
  const void* gate_bias = nullptr;
  const void* up_bias = nullptr;
  const void* down_bias = nullptr;

  gatefold_args c_args() const {
    gatefold_args args{};
    args.struct_size = sizeof args;
    args.tokens = tokens;
    args.x = x;
    args.gate = gate;
    args.up = up;
    args.down = down;
    args.out = out;
    args.workspace = workspace.data;
    args.workspace_size = workspace.size;
    args.stream = stream;
    args.gate_bias = gate_bias;
    args.up_bias = up_bias;
    args.down_bias = down_bias;
    return args;
  }
};

struct Candidate {
  std::string name;
  bool chosen = false;
  bool eligible = false;
  std::string reason;
};

// An immutable choice of how to compute a description; threads may share it.
class Plan {
 public:
  // Throws Error.
  explicit Plan(const Desc& desc) {
    const gatefold_desc c_desc = desc.c_desc();
    gatefold_plan* plan = nullptr;
    throw_on_error(gatefold_plan_create(&c_desc, &plan));
    plan_.reset(plan);
  }

  // Bytes for a run of up to max_tokens tokens. Throws Error.
  std::size_t workspace_size(std::int64_t max_tokens) const {
    std::size_t bytes = 0;
    throw_on_error(gatefold_plan_workspace_size(plan_.get(), max_tokens, &bytes));
    return bytes;
  }

  // Throws Error; the output is then untouched.
  void run(const Args& args) const {
    const gatefold_args c_args = args.c_args();
    throw_on_error(gatefold_run(plan_.get(), &c_args));
  }

  std::string implementation(std::int64_t tokens) const { return gatefold_plan_implementation(plan_.get(), tokens); }

  // Every candidate in order, and why it was chosen or passed over.
  std::vector<Candidate> explain(std::int64_t tokens) const {
    std::vector<Candidate> candidates;
    gatefold_candidate c{};
    for (int i = 0; gatefold_plan_candidate(plan_.get(), tokens, i, &c) != 0; ++i) {
      candidates.push_back({c.name, c.chosen != 0, c.eligible != 0, c.reason});
    }
    return candidates;
  }

  // The kernels of a candidate that can take the description, each of which desc.implementation can force as
  // "IMPLEMENTATION:KERNEL"; none of a candidate that has but one.
  std::vector<std::string> kernels(const std::string& implementation) const {
    std::vector<std::string> names;
    const auto next = [&] {
      return gatefold_plan_kernel(plan_.get(), implementation.c_str(), static_cast<int>(names.size()));
    };
    while (const char* name = next()) names.emplace_back(name);
    return names;
  }

 private:
  struct Destroy {
    void operator()(gatefold_plan* plan) const { gatefold_plan_destroy(plan); }
  };
  std::unique_ptr<gatefold_plan, Destroy> plan_;
};

// gatefold_check. truth: null, or room for tokens x columns doubles. Throws Error.
inline gatefold_error_report check(const Desc& desc, const Args& args, gatefold_data data, double* truth = nullptr) {
  const gatefold_desc c_desc = desc.c_desc();
  const gatefold_args c_args = args.c_args();
  gatefold_error_report report{};
  throw_on_error(gatefold_check(&c_desc, &c_args, data, &report, truth));
  return report;
}

}  // namespace gatefold::inline v0

#endif
