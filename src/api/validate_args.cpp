#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>

#include "api/struct_size.hpp"
#include "api/validate.hpp"

namespace gatefold {
namespace {

// A tensor of one run as it lies in memory.
struct Extent {
  const char* name;
  const void* data;
  std::int64_t rows;
  std::int64_t row_length;
  std::int64_t ld;
  bool used = true;  // does the op read (or write) a tensor of this name?
  const char* unused_because = "this op and layout expect";
};

Extent bias(const char* name, const void* data, std::int64_t length, bool used) {
  return {name, data, 1, length, length, used, "the description's biases expect"};
}

bool is_empty(const Extent& e) { return e.rows == 0 || e.row_length == 0; }

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// Bytes from the first element to past the last. Checked to fit by check_extent.
std::uintptr_t span_bytes(const Extent& e, std::int64_t element) {
  return static_cast<std::uintptr_t>(((e.rows - 1) * e.ld + e.row_length) * element);
}

Status check_extent(const Extent& e, std::int64_t element) {
  if (!e.used) {
    if (e.data != nullptr) return invalid(e.name, ": a pointer was given, but ", e.unused_because, " null");
    return {};
  }
  if (is_empty(e)) return {};
  if (e.data == nullptr) return invalid(e.name, ": null pointer, expected ", e.rows, " x ", e.row_length, " elements");
  if (address(e.data) % static_cast<std::uintptr_t>(element) != 0) {
    return invalid(e.name, ": address ", e.data, " is not aligned to the element size ", element);
  }
  std::int64_t elements = 0;
  if (__builtin_mul_overflow(e.rows, e.ld, &elements) || elements > std::numeric_limits<std::int64_t>::max() / 8 ||
      span_bytes(e, element) > std::numeric_limits<std::uintptr_t>::max() - address(e.data)) {
    return invalid(e.name, ": ", e.rows, " rows of leading dimension ", e.ld, " overflow the address space");
  }
  return {};
}

// Two tensors of one row pitch may share a range of addresses and still be apart: column slices of one buffer. A single
// row has the pitch of whatever it lies beside.
bool apart_as_columns(const Extent& a, const Extent& b, std::int64_t element) {
  if (a.ld != b.ld && a.rows != 1 && b.rows != 1) return false;
  const auto pitch = static_cast<std::uintptr_t>((a.rows == 1 ? b.ld : a.ld) * element);
  const std::uintptr_t a_column = address(a.data) % pitch;
  const std::uintptr_t b_column = address(b.data) % pitch;
  const std::uintptr_t shift = b_column >= a_column ? b_column - a_column : b_column + pitch - a_column;
  const auto a_width = static_cast<std::uintptr_t>(a.row_length * element);
  const auto b_width = static_cast<std::uintptr_t>(b.row_length * element);
  return shift >= a_width && shift + b_width <= pitch;
}

bool overlaps(const Extent& a, const Extent& b, std::int64_t element) {
  if (!a.used || !b.used || is_empty(a) || is_empty(b)) return false;
  const std::uintptr_t a_begin = address(a.data);
  const std::uintptr_t b_begin = address(b.data);
  if (a_begin + span_bytes(a, element) <= b_begin || b_begin + span_bytes(b, element) <= a_begin) return false;
  return !apart_as_columns(a, b, element);
}

bool same_place(const Extent& a, const Extent& b) { return a.data == b.data && a.ld == b.ld; }

struct Extents {
  std::array<Extent, 7> inputs;
  Extent out;
};

Extents extents_of(const Problem& p, const gatefold_args& args) {
  const std::int64_t T = args.tokens;
  const std::int64_t D = p.hidden_size;
  const std::int64_t F = p.intermediate_size;
  const bool packed = p.layout.packed();
  const std::int64_t lines = packed ? 2 * F : F;
  Extent x{"x", args.x, T, D, p.ld_x};
  Extent gate{"gate", args.gate, lines, D, p.ld_gate};
  Extent up{"up", args.up, F, D, p.ld_up, !packed};
  Extent down{"down", args.down, D, F, p.ld_down, p.op == Op::mlp};
  Extent out{"out", args.out, T, p.op == Op::mlp ? D : F, p.ld_out};
  switch (p.op) {
    case Op::act_and_mul:
      x.used = false;
      gate = {"gate", args.gate, T, lines, p.ld_gate};
      up = {"up", args.up, T, F, p.ld_up, !packed};
      break;
    case Op::gemm: gate.used = false; break;
    case Op::gemm_gated: gate = {"gate", args.gate, T, F, p.ld_gate}; break;
    case Op::gate_up:
    case Op::mlp: break;
  }
  return {{x, gate, up, down, bias("gate_bias", args.gate_bias, lines, p.biases.gate),
           bias("up_bias", args.up_bias, F, p.biases.up), bias("down_bias", args.down_bias, D, p.biases.down)},
          out};
}

}  // namespace

bool empty_output(const Problem& problem, std::int64_t tokens) {
  return tokens == 0 || (problem.op == Op::mlp ? problem.hidden_size : problem.intermediate_size) == 0;
}

Status read(const gatefold_args& given, gatefold_args& known) {
  constexpr std::array older{offsetof(gatefold_args, gate_bias)};  // 0.1.0
  return read_struct("args", given, older, known);
}

Status validate(const Problem& problem, const gatefold_args& args, Operands& operands) {
  if (args.tokens < 0) return invalid("tokens: ", args.tokens, " is negative");

  if (!empty_output(problem, args.tokens)) {
    const std::int64_t element = size_of(problem.types.x);
    const Extents extents = extents_of(problem, args);
    for (const Extent& input : extents.inputs) {
      if (Status status = check_extent(input, element); !status.ok()) return status;
    }
    if (Status status = check_extent(extents.out, element); !status.ok()) return status;
    for (const Extent& input : extents.inputs) {
      const bool in_place = problem.op == Op::act_and_mul && !problem.layout.packed() && same_place(input, extents.out);
      if (!in_place && overlaps(input, extents.out, element)) {
        return invalid("out: ", extents.out.rows, " x ", extents.out.row_length, " at ", extents.out.data,
                       " overlaps input ", input.name, ", ", input.rows, " x ", input.row_length, " at ", input.data);
      }
    }
  }
  if (problem.device == Device::cpu && args.stream != nullptr) {
    return invalid("stream: ", args.stream, " was given, but the CPU expects null");
  }

  operands = {.tokens = args.tokens,
              .x = static_cast<const std::byte*>(args.x),
              .gate = static_cast<const std::byte*>(args.gate),
              .up = static_cast<const std::byte*>(args.up),
              .down = static_cast<const std::byte*>(args.down),
              .out = static_cast<std::byte*>(args.out),
              .workspace = static_cast<std::byte*>(args.workspace),
              .workspace_size = args.workspace_size,
              .stream = args.stream,
              .gate_bias = static_cast<const std::byte*>(args.gate_bias),
              .up_bias = static_cast<const std::byte*>(args.up_bias),
              .down_bias = static_cast<const std::byte*>(args.down_bias)};
  return {};
}

}  // namespace gatefold
