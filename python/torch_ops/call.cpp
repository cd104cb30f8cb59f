#include "call.hpp"

#include <stdexcept>
#include <utility>

#include "how.hpp"

// It lives in the libraries of a torch with CUDA alone.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);

namespace gatefold_torch {
namespace {

constexpr int64_t kWorkspaceAlignment = 256;

void* current_stream(const Kind& kind) {
  if (kind.device_type == aoti_torch_device_type_cpu()) return nullptr;
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

Call::Call(gatefold_op op, const char* first_name, const Tensor& first, const std::string& how)
    : first_name_(first_name), kind_(kind_of(first)) {
  How parsed = parse_how(how);
  desc_.struct_size = sizeof desc_;
  desc_.op = op;
  desc_.dtype = dtype_of(first_name, kind_);
  desc_.device = device_of(first_name, kind_);
  desc_.layout = parsed.layout;
  desc_.block = parsed.block;
  desc_.activation = parsed.activation;
  desc_.limit = parsed.limit;
  desc_.alpha = parsed.alpha;
  desc_.beta = parsed.beta;
  implementation_ = std::move(parsed.implementation);
  args_.struct_size = sizeof args_;
}

void Call::set_sizes(int64_t hidden_size, int64_t intermediate_size) {
  desc_.hidden_size = hidden_size;
  desc_.intermediate_size = intermediate_size;
}

void Call::input(const char* name, Tensor& tensor, const void*& data, int64_t& ld) {
  require_kind(name, tensor, kind_, first_name_);
  const Rows rows = input_rows(tensor);
  data = rows.data;
  ld = rows.ld;
}

void Call::input_bias(const char* name, OptionalTensor& bias, int64_t length, gatefold_bias which, const void*& data) {
  if (!bias) return;
  require_sizes(name, *bias, {length}, "its weight");
  int64_t packed = 0;
  input(name, *bias, data, packed);
  desc_.biases |= static_cast<uint64_t>(which);
}

Tensor Call::run(std::span<const int64_t> tokens, int64_t columns, const Tensor* out) {
  Sizes sizes(tokens.begin(), tokens.end());
  args_.tokens = 1;
  for (const int64_t size : sizes) args_.tokens *= size;
  sizes.push_back(columns);
  if (out != nullptr) {
    require_kind("out", *out, kind_, first_name_);
    require_sizes("out", *out, sizes, "the operation");
    desc_.ld_out = output_leading_dimension(*out);
  }
  Tensor result = out != nullptr ? *out : empty(sizes, kind_);
  args_.out = result.mutable_data_ptr();

  const Plan plan = plan_for(desc_, implementation_);
  size_t bytes = 0;
  check(gatefold_plan_workspace_size(plan.get(), args_.tokens, &bytes));
  Tensor workspace;
  if (bytes != 0) {
    workspace = empty_bytes(static_cast<int64_t>(bytes) + kWorkspaceAlignment - 1, kind_);
    args_.workspace = aligned(workspace.mutable_data_ptr());
    args_.workspace_size = bytes;
  }
  args_.stream = current_stream(kind_);
  check(gatefold_run(plan.get(), &args_));
  return result;
}

}  // namespace gatefold_torch
