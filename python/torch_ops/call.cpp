#include "call.hpp"

#include <stdexcept>

#include "how.hpp"

// It lives in the libraries of a torch with CUDA alone.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);

namespace gatefold_torch {
namespace {

constexpr int64_t kWorkspaceAlignment = 256;

void* current_stream(const Kind& kind) {
  static const int32_t cpu = aoti_torch_device_type_cpu();
  if (kind.device_type == cpu) return nullptr;
  if (aoti_torch_get_current_cuda_stream == nullptr) throw std::runtime_error("this torch has no CUDA streams");
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(kind.device_index, &stream));
  return stream;
}

void* aligned(void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto mask = static_cast<uintptr_t>(kWorkspaceAlignment - 1);
  return static_cast<char*>(memory) + (((address + mask) & ~mask) - address);
}

}  // namespace

Call::Call(gatefold_op op, const Argument& first, const std::string& how) : first_(first) {
  const How& parsed = parse_how(how);
  desc_.struct_size = sizeof desc_;
  desc_.op = op;
  desc_.dtype = dtype_of(first);
  desc_.device = device_of(first);
  desc_.layout = parsed.layout;
  desc_.block = parsed.block;
  desc_.activation = parsed.activation;
  desc_.limit = parsed.limit;
  desc_.alpha = parsed.alpha;
  desc_.beta = parsed.beta;
  desc_.flags = parsed.flags;
  implementation_ = parsed.implementation;
  args_.struct_size = sizeof args_;
}

void Call::set_sizes(int64_t hidden_size, int64_t intermediate_size) {
  desc_.hidden_size = hidden_size;
  desc_.intermediate_size = intermediate_size;
}

void Call::input(const Argument& argument, const void*& data, int64_t& ld) {
  require_kind(argument, first_);
  if (const auto rows = leading_dimension(argument)) {
    data = data_of(argument.tensor);
    ld = *rows;
  } else {
    data = data_of(copies_.emplace_back(contiguous(argument)));
  }
}

void Call::input_bias(const char* name, const OptionalTensor& bias, int64_t length, gatefold_bias which,
                      const void*& data) {
  if (!bias) return;
  const Argument argument(name, *bias);
  require_sizes(argument, {}, {length}, [] { return "its weight"; });
  int64_t packed = 0;
  input(argument, data, packed);
  desc_.biases |= static_cast<uint64_t>(which);
}

Tensor Call::run(std::span<const int64_t> tokens, int64_t columns, const Tensor* out) {
  args_.tokens = 1;
  for (const int64_t size : tokens) args_.tokens *= size;
  if (out != nullptr) {
    const Argument given("out", *out);
    require_kind(given, first_);
    require_sizes(given, tokens, {columns}, [] { return "the operation"; });
    desc_.ld_out = output_leading_dimension(given);
  }
  Tensor made = out != nullptr ? nullptr : empty(tokens, columns, first_.kind);
  args_.out = writable_data_of(out != nullptr ? *out : made);

  const Plan& plan = plan_for(desc_, implementation_);
  size_t bytes = 0;
  check(gatefold_plan_workspace_size(plan.get(), args_.tokens, &bytes));
  Tensor workspace;
  if (bytes != 0) {
    workspace = empty_bytes(static_cast<int64_t>(bytes) + kWorkspaceAlignment - 1, first_.kind);
    args_.workspace = aligned(writable_data_of(workspace));
    args_.workspace_size = bytes;
  }
  args_.stream = current_stream(first_.kind);
  check(gatefold_run(plan.get(), &args_));
  return made;
}

}  // namespace gatefold_torch
