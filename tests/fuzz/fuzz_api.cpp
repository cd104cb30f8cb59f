// Whatever a caller fills into a description and a run's arguments, the API answers with a status: it does not crash,
// throw, or touch memory that the arguments don't give it; and a run that fails leaves the output as it was.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/api_values.hpp"
#include "gatefold/gatefold.h"

namespace {

constexpr std::int64_t most_bytes = 1 << 14;  // of a tensor that is really there
constexpr std::byte filler{0x3c};             // a small positive number in every type

void require(bool condition) {
  if (!condition) std::abort();
}

// ---- the memory of a run --------------------------------------------------------------------------------------------

// Exactly as many bytes as a matrix spans, so that the address sanitizer sees the first one too many.
class Buffer {
 public:
  Buffer(std::int64_t rows, std::int64_t row_length, std::int64_t ld, std::int64_t element) {
    if (rows <= 0 || row_length <= 0) return;
    const auto between = static_cast<long double>(rows - 1) * static_cast<long double>(ld == 0 ? row_length : ld);
    const auto bytes = (between + static_cast<long double>(row_length)) * static_cast<long double>(element);
    fits_ = bytes <= most_bytes;
    if (fits_) bytes_.assign(static_cast<std::size_t>(bytes), filler);
  }

  bool fits() const { return fits_; }
  std::byte* data() { return bytes_.data(); }
  bool untouched() const {
    return std::all_of(bytes_.begin(), bytes_.end(), [](std::byte b) { return b == filler; });
  }

 private:
  bool fits_ = true;
  std::vector<std::byte> bytes_;
};

struct Buffers {
  Buffer x, gate, up, down, out;
  Buffer gate_bias{0, 0, 0, 0}, up_bias{0, 0, 0, 0}, down_bias{0, 0, 0, 0};

  bool fit() const {
    const std::array all{&x, &gate, &up, &down, &out, &gate_bias, &up_bias, &down_bias};
    return std::all_of(all.begin(), all.end(), [](const Buffer* buffer) { return buffer->fits(); });
  }
};

void add_biases(Buffers& buffers, const gatefold_desc& d) {
  const std::int64_t D = d.hidden_size;
  const std::int64_t F = d.intermediate_size;
  const std::int64_t element = d.dtype == GATEFOLD_DTYPE_FP32 ? 4 : 2;
  const std::int64_t lines = d.layout > GATEFOLD_LAYOUT_SEPARATE ? 2 * F : F;
  if ((d.biases & GATEFOLD_BIAS_GATE) != 0) buffers.gate_bias = Buffer(1, lines, lines, element);
  if ((d.biases & GATEFOLD_BIAS_UP) != 0) buffers.up_bias = Buffer(1, F, F, element);
  if ((d.biases & GATEFOLD_BIAS_DOWN) != 0) buffers.down_bias = Buffer(1, D, D, element);
}

// For a description that a plan was made from: its fields are known to be good.
Buffers buffers_for(const gatefold_desc& d, std::int64_t T) {
  const std::int64_t D = d.hidden_size;
  const std::int64_t F = d.intermediate_size;
  const std::int64_t element = d.dtype == GATEFOLD_DTYPE_FP32 ? 4 : 2;
  const bool packed = d.layout > GATEFOLD_LAYOUT_SEPARATE;
  const std::int64_t lines = packed ? 2 * F : F;
  const bool mlp = d.op == GATEFOLD_OP_MLP;
  const Buffer none(0, 0, 0, element);
  const Buffer x(T, D, d.ld_x, element);
  const Buffer out(T, mlp ? D : F, d.ld_out, element);
  switch (d.op) {
    case GATEFOLD_OP_ACT_AND_MUL:
      return {none, {T, lines, d.ld_gate, element}, packed ? none : Buffer(T, F, d.ld_up, element), none, out};
    case GATEFOLD_OP_GEMM: return {x, none, {F, D, d.ld_up, element}, none, out};
    case GATEFOLD_OP_GEMM_GATED: return {x, {T, F, d.ld_gate, element}, {F, D, d.ld_up, element}, none, out};
    case GATEFOLD_OP_GATE_UP:
    case GATEFOLD_OP_MLP: break;
  }
  return {x,
          {lines, D, d.ld_gate, element},
          packed ? none : Buffer(F, D, d.ld_up, element),
          mlp ? Buffer(D, F, d.ld_down, element) : none,
          out};
}

// ---- what is asked of the API ---------------------------------------------------------------------------------------

// Failures carry one line; out of memory may have none.
void require_message(gatefold_status status) {
  const std::string message = gatefold_last_error();
  require(message.find('\n') == std::string::npos);
  require((status == GATEFOLD_SUCCESS) == message.empty() || status == GATEFOLD_ERROR_OUT_OF_MEMORY);
  require(status != GATEFOLD_ERROR_INTERNAL && status != GATEFOLD_ERROR_DEVICE);
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

void run_and_check(FuzzedDataProvider& in, const gatefold_desc& desc, const Sized<gatefold_desc>& sized_desc,
                   const gatefold_plan* plan, std::int64_t tokens) {
  Buffers buffers = buffers_for(desc, tokens);
  add_biases(buffers, desc);
  if (!buffers.fit()) return;

  gatefold_args args{};
  args.struct_size = any_struct_size(in, sizeof args);
  args.tokens = tokens;
  args.x = buffers.x.data();
  args.gate = buffers.gate.data();
  args.up = buffers.up.data();
  args.down = buffers.down.data();
  args.out = buffers.out.data();
  args.gate_bias = buffers.gate_bias.data();
  args.up_bias = buffers.up_bias.data();
  args.down_bias = buffers.down_bias.data();
  std::array<const void**, 7> inputs{&args.x,         &args.gate,    &args.up,       &args.down,
                                     &args.gate_bias, &args.up_bias, &args.down_bias};
  bool out_is_input = false;
  switch (in.ConsumeIntegralInRange<int>(0, 15)) {
    case 0: *in.PickValueInArray(inputs) = nullptr; break;
    case 1: args.out = nullptr; break;
    case 2:  // an output that overlaps an input; only refused, or an in-place act_and_mul, which fits
      args.out = const_cast<void*>(*in.PickValueInArray(inputs));
      out_is_input = true;
      break;
    case 3: args.stream = &args; break;
    case 4: *in.PickValueInArray(inputs) = reinterpret_cast<const std::byte*>(&args) + 1; break;  // misaligned
    default: break;
  }

  std::size_t needed = 0;
  require_message(gatefold_plan_workspace_size(plan, tokens, &needed));
  if (needed > (std::size_t{1} << 20)) return;  // an mlp without an output may still have a long h
  const std::unique_ptr<void, Free> workspace(std::aligned_alloc(256, (needed + 511) / 256 * 256));
  args.workspace = workspace.get();
  args.workspace_size = needed;
  const int spoilt = in.ConsumeIntegralInRange<int>(0, 15);
  if (spoilt == 0) args.workspace_size = needed / 2;
  if (spoilt == 1) args.workspace = nullptr;
  if (spoilt == 2) args.workspace = static_cast<std::byte*>(workspace.get()) + 4;

  // An output that is an input of a smaller kind must be refused before it is written: nothing tells us its size.
  const Sized<gatefold_args> sized_args(in, args);
  const gatefold_status status = gatefold_run(plan, sized_args.get());
  require_message(status);
  if (status != GATEFOLD_SUCCESS) require(buffers.out.untouched());
  if (out_is_input) return;

  gatefold_error_report report{};
  const gatefold_data data = in.ConsumeBool() ? GATEFOLD_DATA_ANY : GATEFOLD_DATA_ZERO_MEAN;
  require_message(gatefold_check(sized_desc.get(), sized_args.get(), data, &report, nullptr));
}

void ask_about(FuzzedDataProvider& in, const gatefold_plan* plan) {
  const std::int64_t tokens = any_size(in);
  std::size_t bytes = 0;
  require_message(gatefold_plan_workspace_size(plan, tokens, &bytes));
  require(gatefold_plan_implementation(plan, tokens) != nullptr);
  int chosen = 0;
  gatefold_candidate candidate{};
  for (int i = 0; gatefold_plan_candidate(plan, tokens, i, &candidate) != 0; ++i) {
    require(std::strlen(candidate.name) > 0 && std::strlen(candidate.reason) > 0);
    chosen += candidate.chosen;
    int kernels = 0;
    while (const char* kernel = gatefold_plan_kernel(plan, candidate.name, kernels)) {
      require(std::strlen(kernel) > 0);
      ++kernels;
    }
    require(gatefold_plan_kernel(plan, candidate.name, -1) == nullptr);
    require(gatefold_plan_kernel(plan, candidate.name, kernels + in.ConsumeIntegralInRange<int>(0, 1 << 20)) ==
            nullptr);
  }
  require(chosen == 1);
  require(gatefold_plan_candidate(plan, tokens, -1, &candidate) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  const gatefold_desc desc = any_desc(in);
  const Sized<gatefold_desc> sized_desc(in, desc);

  gatefold_plan* plan = nullptr;
  const gatefold_status status = gatefold_plan_create(sized_desc.get(), &plan);
  require_message(status);
  require((status == GATEFOLD_SUCCESS) == (plan != nullptr));
  if (plan != nullptr && desc.device == GATEFOLD_DEVICE_CPU) {
    gatefold_implementation_name(desc.op, desc.device, in.ConsumeIntegral<int>());
    ask_about(in, plan);
    run_and_check(in, desc, sized_desc, plan, any_size(in));
  }
  gatefold_plan_destroy(plan);
  return 0;
}
