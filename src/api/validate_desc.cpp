#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "api/enum_number.hpp"
#include "api/struct_size.hpp"
#include "api/validate.hpp"

namespace gatefold {
namespace {

constexpr std::int64_t max_elements = std::numeric_limits<std::int64_t>::max() / 8;  // in bytes it still fits 64 bits

bool multiplies(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && product <= max_elements;
}

// A matrix as the description gives it: its name and size, and where its leading dimension stands.
struct Matrix {
  const char* name;
  std::int64_t rows;  // 0 where it is known only at run time
  const char* row_name;
  std::int64_t row_length;
  std::int64_t given_ld;
};

Status resolve_ld(const Matrix& matrix, std::int64_t& ld) {
  if (matrix.given_ld < 0) return invalid(matrix.name, ": leading dimension ", matrix.given_ld, " is negative");
  if (matrix.given_ld != 0 && matrix.given_ld < matrix.row_length) {
    return invalid(matrix.name, ": leading dimension ", matrix.given_ld, " < ", matrix.row_name, " ",
                   matrix.row_length);
  }
  ld = matrix.given_ld != 0 ? matrix.given_ld : matrix.row_length;
  if (!multiplies(matrix.rows, ld)) {
    return invalid(matrix.name, ": ", matrix.rows, " rows of leading dimension ", ld, " overflow 64-bit indexing");
  }
  return {};
}

Status must_be_zero(const char* field, std::int64_t value, Op op) {
  if (value == 0) return {};
  return invalid(field, ": ", value, " was given, but ", to_string(op), " expects 0 here");
}

bool uses_layout(Op op) { return op == Op::act_and_mul || op == Op::gate_up || op == Op::mlp; }

Status check_enums(const gatefold_desc& desc) {
  if (const int op = enum_number(desc.op); op < GATEFOLD_OP_ACT_AND_MUL || op > GATEFOLD_OP_MLP) {
    return invalid("op: ", op, " is not a gatefold_op (1 to 5)");
  }
  if (const int dtype = enum_number(desc.dtype); dtype < GATEFOLD_DTYPE_FP32 || dtype > GATEFOLD_DTYPE_BF16) {
    return invalid("dtype: ", dtype, " is not a gatefold_dtype (1 to 3)");
  }
  if (const int device = enum_number(desc.device); device < GATEFOLD_DEVICE_CPU || device > GATEFOLD_DEVICE_CUDA) {
    return invalid("device: ", device, " is not a gatefold_device (1 or 2)");
  }
  return {};
}

Status check_layout(const gatefold_desc& desc, Op op, Layout& layout) {
  const int kind = enum_number(desc.layout);
  if (!uses_layout(op)) {
    if (kind != 0) return must_be_zero("layout", kind, op);
    return must_be_zero("block", desc.block, op);
  }
  if (kind < GATEFOLD_LAYOUT_SEPARATE || kind > GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE) {
    return invalid("layout: ", kind, " is not a gatefold_layout (1 to 5); it has no default");
  }
  layout.kind = static_cast<LayoutKind>(kind);
  layout.block = desc.block;
  if (!layout.interleaved()) return must_be_zero("block", desc.block, op);
  if (desc.block <= 0)
    return invalid("block: ", desc.block, " is not positive, but the layout is ", to_string(layout.kind));
  if (desc.intermediate_size % desc.block != 0) {
    return invalid("block: intermediate_size ", desc.intermediate_size, " is not a multiple of block ", desc.block);
  }
  return {};
}

Status check_activation(const gatefold_desc& desc, Op op, Activation& activation) {
  const int kind = enum_number(desc.activation);
  if (op == Op::gemm) return must_be_zero("activation", kind, op);
  if (kind < GATEFOLD_ACTIVATION_SILU || kind > GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) {
    return invalid("activation: ", kind, " is not a gatefold_activation (1 to 7)");
  }
  activation.kind = static_cast<ActivationKind>(kind);
  if (activation.kind != ActivationKind::swiglu_clamped) return {};
  if (!(desc.limit > 0.0F)) return invalid("limit: ", desc.limit, " is not > 0");
  if (!std::isfinite(desc.alpha)) return invalid("alpha: ", desc.alpha, " is not finite");
  if (!std::isfinite(desc.beta)) return invalid("beta: ", desc.beta, " is not finite");
  activation.limit = desc.limit;
  activation.alpha = desc.alpha;
  activation.beta = desc.beta;
  return {};
}

Status check_sizes(const gatefold_desc& desc, Op op) {
  if (desc.hidden_size < 0) return invalid("hidden_size: ", desc.hidden_size, " is negative");
  if (desc.intermediate_size < 0) return invalid("intermediate_size: ", desc.intermediate_size, " is negative");
  if (op == Op::act_and_mul && desc.hidden_size != 0) return must_be_zero("hidden_size", desc.hidden_size, op);
  if (!multiplies(desc.intermediate_size, 2)) {
    return invalid("intermediate_size: 2 x ", desc.intermediate_size, " overflows 64-bit indexing");
  }
  if (!multiplies(2 * desc.intermediate_size, desc.hidden_size)) {
    return invalid("intermediate_size x hidden_size: 2 x ", desc.intermediate_size, " x ", desc.hidden_size,
                   " overflows 64-bit indexing");
  }
  return {};
}

// The bits that an op takes with its layout.
std::uint64_t possible_biases(Op op, const Layout& layout) {
  const std::uint64_t halves = GATEFOLD_BIAS_GATE | (layout.packed() ? 0U : std::uint64_t{GATEFOLD_BIAS_UP});
  switch (op) {
    case Op::act_and_mul: return 0;
    case Op::gemm:
    case Op::gemm_gated: return GATEFOLD_BIAS_UP;
    case Op::gate_up: return halves;
    case Op::mlp: return halves | GATEFOLD_BIAS_DOWN;
  }
  return 0;
}

std::string bias_names(std::uint64_t bits) {
  constexpr std::array<const char*, 3> names{"gate 1", "up 2", "down 4"};
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1U) != 0) text += (text.empty() ? "" : " + ") + std::string(names[i]);
  }
  return text.empty() ? "none, 0" : text;
}

Status check_biases(const gatefold_desc& desc, Op op, const Layout& layout, Biases& biases) {
  const std::uint64_t possible = possible_biases(op, layout);
  if ((desc.biases & ~possible) != 0) {
    return invalid("biases: ", desc.biases, " was given, but ", to_string(op),
                   layout.packed() ? concat(" with the layout ", to_string(layout.kind)) : "", " takes ",
                   possible == 0 ? "" : "at most ", bias_names(possible));
  }
  biases = {.gate = (desc.biases & GATEFOLD_BIAS_GATE) != 0,
            .up = (desc.biases & GATEFOLD_BIAS_UP) != 0,
            .down = (desc.biases & GATEFOLD_BIAS_DOWN) != 0};
  return {};
}

Status check_chunk(const gatefold_desc& desc, Op op, std::int64_t& chunk_tokens) {
  if (op != Op::mlp) return must_be_zero("chunk_tokens", desc.chunk_tokens, op);
  if (desc.chunk_tokens < 0) return invalid("chunk_tokens: ", desc.chunk_tokens, " is negative");
  chunk_tokens = desc.chunk_tokens;
  return {};
}

Status check_flags(const gatefold_desc& desc, bool& batch_invariant) {
  constexpr std::uint64_t known = GATEFOLD_FLAG_BATCH_INVARIANT;
  if ((desc.flags & ~known) != 0) return invalid("flags: ", desc.flags, " was given, but at most ", known, " is known");
  batch_invariant = (desc.flags & GATEFOLD_FLAG_BATCH_INVARIANT) != 0;
  return {};
}

Status resolve_pair(const gatefold_desc& desc, Problem& problem) {
  const std::int64_t F = desc.intermediate_size;
  const bool packed = problem.layout.packed();
  const bool operands = problem.op == Op::act_and_mul;  // halves are columns, not rows
  const std::int64_t lines = packed ? 2 * F : F;
  Matrix gate{packed ? "gate and up" : "gate", operands ? 0 : lines,
              operands ? (packed ? "2 x intermediate_size" : "intermediate_size") : "hidden_size",
              operands ? lines : desc.hidden_size, desc.ld_gate};
  if (Status status = resolve_ld(gate, problem.ld_gate); !status.ok()) return status;
  if (packed) return must_be_zero("ld_up", desc.ld_up, problem.op);
  gate.name = "up";
  gate.given_ld = desc.ld_up;
  return resolve_ld(gate, problem.ld_up);
}

// gemm's w and gemm_gated's w_up [F, D]; gemm_gated's gate [T, F].
Status resolve_single(const gatefold_desc& desc, Problem& problem) {
  const std::int64_t F = desc.intermediate_size;
  const Matrix weight{"up", F, "hidden_size", desc.hidden_size, desc.ld_up};
  if (Status status = resolve_ld(weight, problem.ld_up); !status.ok()) return status;
  if (problem.op == Op::gemm) return must_be_zero("ld_gate", desc.ld_gate, problem.op);
  return resolve_ld({"gate", 0, "intermediate_size", F, desc.ld_gate}, problem.ld_gate);
}

Status resolve_lds(const gatefold_desc& desc, Problem& problem) {
  const Op op = problem.op;
  Status status = uses_layout(op) ? resolve_pair(desc, problem) : resolve_single(desc, problem);
  if (!status.ok()) return status;

  status = op == Op::act_and_mul ? must_be_zero("ld_x", desc.ld_x, op)
                                 : resolve_ld({"x", 0, "hidden_size", desc.hidden_size, desc.ld_x}, problem.ld_x);
  if (!status.ok()) return status;

  status = op == Op::mlp
               ? resolve_ld({"down", desc.hidden_size, "intermediate_size", desc.intermediate_size, desc.ld_down},
                            problem.ld_down)
               : must_be_zero("ld_down", desc.ld_down, op);
  if (!status.ok()) return status;

  if (op == Op::mlp) return resolve_ld({"out", 0, "hidden_size", desc.hidden_size, desc.ld_out}, problem.ld_out);
  return resolve_ld({"out", 0, "intermediate_size", desc.intermediate_size, desc.ld_out}, problem.ld_out);
}

}  // namespace

Status read(const gatefold_desc& given, gatefold_desc& known) {
  constexpr std::array older{offsetof(gatefold_desc, biases)};  // 0.1.0
  return read_struct("desc", given, older, known);
}

Status validate(const gatefold_desc& desc, Problem& problem) {
  if (Status status = check_enums(desc); !status.ok()) return status;
  Problem made;
  made.op = static_cast<Op>(desc.op);
  made.types = ElementTypes::all(static_cast<DType>(desc.dtype));
  made.device = static_cast<Device>(desc.device);
  made.hidden_size = desc.hidden_size;
  made.intermediate_size = desc.intermediate_size;
  if (Status status = check_sizes(desc, made.op); !status.ok()) return status;
  if (Status status = check_layout(desc, made.op, made.layout); !status.ok()) return status;
  if (Status status = check_activation(desc, made.op, made.activation); !status.ok()) return status;
  if (Status status = check_biases(desc, made.op, made.layout, made.biases); !status.ok()) return status;
  if (Status status = check_chunk(desc, made.op, made.chunk_tokens); !status.ok()) return status;
  if (Status status = check_flags(desc, made.batch_invariant); !status.ok()) return status;
  if (Status status = resolve_lds(desc, made); !status.ok()) return status;
  problem = made;
  return {};
}

}  // namespace gatefold
