#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gatefold/gatefold.h"

// Values of descriptions and arguments that are worth trying.
namespace {

constexpr std::size_t largest_struct = 4096;  // that a struct_size may speak of

std::int64_t any_size(FuzzedDataProvider& in) {
  constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
  constexpr std::array<std::int64_t, 14> hostile{-1,
                                                 -2,
                                                 std::numeric_limits<std::int64_t>::min(),
                                                 max,
                                                 max - 1,
                                                 max / 2,
                                                 max / 4,
                                                 max / 8,
                                                 max / 16,
                                                 max / 64,
                                                 1LL << 31,
                                                 1LL << 32,
                                                 (1LL << 32) + 1,
                                                 1LL << 62};
  switch (in.ConsumeIntegralInRange<int>(0, 15)) {
    case 0: return in.PickValueInArray(hostile);
    case 1: return in.ConsumeIntegral<std::int64_t>();
    default: return in.ConsumeIntegralInRange<std::int64_t>(0, 20);
  }
}

std::int64_t any_ld(FuzzedDataProvider& in, std::int64_t row_length) {
  if (in.ConsumeBool()) return 0;
  if (in.ConsumeBool() || row_length < 0 || row_length > 1024) return any_size(in);
  return row_length + in.ConsumeIntegralInRange<std::int64_t>(0, 3);
}

// Any bit pattern, written as a C caller's int would be. Returns it: C++ must not read it as the enum.
template <class Enum>
int set_enum(Enum& field, FuzzedDataProvider& in, int last) {
  const bool hostile = in.ConsumeIntegralInRange<int>(0, 31) == 0;
  const int value = hostile ? in.ConsumeIntegral<int>() : in.ConsumeIntegralInRange<int>(0, last + 1);
  static_assert(sizeof field == sizeof value);
  std::memcpy(&field, &value, sizeof value);
  return value;
}

float any_float(FuzzedDataProvider& in) {
  if (in.ConsumeBool()) return std::bit_cast<float>(in.ConsumeIntegral<std::uint32_t>());
  return static_cast<float>(in.ConsumeIntegralInRange<int>(0, 8));
}

// Mostly today's; an earlier version's, a later one's, or any.
std::size_t any_struct_size(FuzzedDataProvider& in, std::size_t right) {
  switch (in.ConsumeIntegralInRange<int>(0, 31)) {
    case 0: return in.ConsumeIntegral<std::size_t>();
    case 1: return in.ConsumeIntegralInRange<std::size_t>(0, right);
    case 2: return right + in.ConsumeIntegralInRange<std::size_t>(0, largest_struct);
    default: return right;
  }
}

// A struct on the heap, as long as its struct_size says: the address sanitizer sees a byte read too many. What lies
// behind the struct of today is zero, but for one byte perhaps. No longer than the API ever reads.
template <class Struct>
class Sized {
 public:
  Sized(FuzzedDataProvider& in, const Struct& whole)
      : bytes_(std::max(sizeof(whole.struct_size), std::min(whole.struct_size, largest_struct))) {
    std::memcpy(bytes_.data(), &whole, std::min(bytes_.size(), sizeof whole));
    if (bytes_.size() > sizeof whole && in.ConsumeBool()) {
      const std::size_t behind = in.ConsumeIntegralInRange<std::size_t>(sizeof whole, bytes_.size() - 1);
      bytes_[behind] = static_cast<std::byte>(in.ConsumeIntegral<std::uint8_t>());
    }
  }

  const Struct* get() const { return reinterpret_cast<const Struct*>(bytes_.data()); }

 private:
  std::vector<std::byte> bytes_;
};

gatefold_desc any_desc(FuzzedDataProvider& in) {
  gatefold_desc d{};
  d.struct_size = any_struct_size(in, sizeof d);
  const int op = set_enum(d.op, in, 5);
  set_enum(d.dtype, in, 3);
  d.device = GATEFOLD_DEVICE_CPU;
  if (in.ConsumeIntegralInRange<int>(0, 31) == 0) set_enum(d.device, in, 2);
  const bool rarely = in.ConsumeIntegralInRange<int>(0, 15) == 0;  // what the op has no use for
  int layout = 0;
  if (rarely || (op != GATEFOLD_OP_GEMM && op != GATEFOLD_OP_GEMM_GATED)) layout = set_enum(d.layout, in, 5);
  if (rarely || layout >= GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP) d.block = any_size(in);
  int activation = 0;
  if (rarely || op != GATEFOLD_OP_GEMM) activation = set_enum(d.activation, in, 7);
  if (activation == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) {
    d.limit = any_float(in);
    d.alpha = any_float(in);
    d.beta = any_float(in);
  }
  if (rarely || op != GATEFOLD_OP_ACT_AND_MUL) d.hidden_size = any_size(in);
  d.intermediate_size = any_size(in);
  const std::int64_t D = d.hidden_size;
  const std::int64_t F = d.intermediate_size;
  const bool weights = op == GATEFOLD_OP_GATE_UP || op == GATEFOLD_OP_MLP;
  if (rarely || op != GATEFOLD_OP_ACT_AND_MUL) d.ld_x = any_ld(in, D);
  if (rarely || op != GATEFOLD_OP_GEMM) d.ld_gate = any_ld(in, weights ? D : F);
  if (rarely || layout <= GATEFOLD_LAYOUT_SEPARATE) d.ld_up = any_ld(in, op == GATEFOLD_OP_ACT_AND_MUL ? F : D);
  if (rarely || op == GATEFOLD_OP_MLP) d.ld_down = any_ld(in, F);
  d.ld_out = any_ld(in, op == GATEFOLD_OP_MLP ? D : F);
  constexpr std::array<const char*, 5> implementations{nullptr, "reference", "composed", "", "no such implementation"};
  d.implementation = in.PickValueInArray(implementations);
  if (in.ConsumeBool()) d.biases = in.ConsumeIntegralInRange<std::uint64_t>(0, 7);
  if (rarely) d.biases = in.ConsumeIntegral<std::uint64_t>();
  if (rarely || (op == GATEFOLD_OP_MLP && in.ConsumeBool())) d.chunk_tokens = any_size(in);
  if (in.ConsumeBool()) d.flags = GATEFOLD_FLAG_BATCH_INVARIANT;
  if (rarely) d.flags = in.ConsumeIntegral<std::uint64_t>();
  return d;
}

}  // namespace
