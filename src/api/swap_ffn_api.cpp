#include <memory>
#include <string_view>
#include <vector>

#include "api/enum_number.hpp"
#include "api/guarded.hpp"
#include "api/struct_size.hpp"
#include "api/swap_ffn_validate.hpp"

using namespace gatefold;

struct gatefold_swap_ffn_plan {
  swap_ffn::Config config;
  std::unique_ptr<swap_ffn::Executor> executor;
};

namespace {

constexpr std::uintptr_t buffer_alignment = 256;

Status check_buffer(const char* name, gatefold_status code, const void* data, std::size_t size, std::size_t needed) {
  if (size < needed) return {code, concat(name, ": ", size, " bytes given, ", needed, " needed")};
  if (data == nullptr) return {code, concat(name, ": null pointer, ", needed, " bytes needed")};
  if (reinterpret_cast<std::uintptr_t>(data) % buffer_alignment != 0) {
    return {code, concat(name, ": address ", data, " is not aligned to ", buffer_alignment, " bytes")};
  }
  return {};
}

// The step of a device by its name; "": the only one.
Status make_executor(const swap_ffn::Config& config, std::string_view name,
                     std::unique_ptr<swap_ffn::Executor>& executor) {
  const std::string_view only = config.device == Device::cpu ? "cpu" : "fused";
  if (!name.empty() && name != only) {
    return invalid("implementation: \"", name, "\" is not one of the Swap-FFN step's on ", to_string(config.device),
                   ": ", only);
  }
  if (config.device == Device::cpu) {
    executor = swap_ffn::make_cpu_executor(config);
    return {};
  }
#if GATEFOLD_WITH_CUDA
  executor = swap_ffn::make_cuda_executor(config);
  return {};
#else
  return unsupported("device: cuda has no Swap-FFN step in this build, only cpu has");
#endif
}

Status create(const gatefold_swap_ffn_desc* desc, gatefold_swap_ffn_plan** plan) {
  if (desc == nullptr) return null_argument("gatefold_swap_ffn_plan_create", "desc");
  if (plan == nullptr) return null_argument("gatefold_swap_ffn_plan_create", "plan");
  auto made = std::make_unique<gatefold_swap_ffn_plan>();
  if (Status status = validate(*desc, made->config); !status.ok()) return status;
  gatefold_swap_ffn_desc known;
  if (Status status = read_struct("desc", *desc, {}, known); !status.ok()) return status;
  Status status =
      make_executor(made->config, known.implementation == nullptr ? "" : known.implementation, made->executor);
  if (!status.ok()) return status;
  *plan = made.release();
  return {};
}

Status prepare(const gatefold_swap_ffn_plan* plan, const gatefold_swap_ffn_weights* weights, void* prepared,
               std::size_t size, void* stream) {
  if (plan == nullptr) return null_argument("gatefold_swap_ffn_prepare", "plan");
  if (weights == nullptr) return null_argument("gatefold_swap_ffn_prepare", "weights");
  swap_ffn::Weights pointers{};
  if (Status status = validate(plan->config, *weights, pointers); !status.ok()) return status;
  const std::size_t needed = plan->executor->prepared_size();
  if (Status status = check_buffer("prepared", GATEFOLD_ERROR_INVALID_ARGUMENT, prepared, size, needed); !status.ok()) {
    return status;
  }
  if (stream != nullptr && plan->config.device == Device::cpu) {
    return invalid("stream: ", stream, " was given, but the CPU expects null");
  }
  return plan->executor->prepare(pointers, static_cast<std::byte*>(prepared), stream);
}

Status step(const gatefold_swap_ffn_plan* plan, const gatefold_swap_ffn_args* given) {
  if (plan == nullptr) return null_argument("gatefold_swap_ffn_step", "plan");
  if (given == nullptr) return null_argument("gatefold_swap_ffn_step", "args");
  gatefold_swap_ffn_args args;
  if (Status status = read_struct("args", *given, {}, args); !status.ok()) return status;
  if (Status status = check_batch(plan->config, "batch", args.batch); !status.ok()) return status;
  if (args.batch == 0) return {};
  if (Status status = check_buffer("prepared", GATEFOLD_ERROR_INVALID_ARGUMENT, args.prepared,
                                   plan->executor->prepared_size(), plan->executor->prepared_size());
      !status.ok()) {
    return status;
  }
  const std::size_t needed = plan->executor->workspace_size(args.batch);
  if (Status status = check_buffer("workspace", GATEFOLD_ERROR_WORKSPACE, args.workspace, args.workspace_size, needed);
      !status.ok()) {
    return status;
  }
  swap_ffn::StepOperands operands;
  if (Status status = validate(plan->config, args, operands); !status.ok()) return status;
  return plan->executor->step(operands);
}

// For the functions that need no plan: reads a description, the weights and a batch, and where that isn't empty calls
// compute(config, weights, operands).
template <class Operands, class Args, class Compute>
Status without_plan(const char* function, const gatefold_swap_ffn_desc* desc, const gatefold_swap_ffn_weights* weights,
                    const Args* given, Compute compute) {
  if (desc == nullptr) return null_argument(function, "desc");
  if (weights == nullptr) return null_argument(function, "weights");
  if (given == nullptr) return null_argument(function, "args");
  swap_ffn::Config config;
  if (Status status = validate(*desc, config); !status.ok()) return status;
  swap_ffn::Weights pointers{};
  if (Status status = validate(config, *weights, pointers); !status.ok()) return status;
  Args args{};
  if (Status status = read_struct("args", *given, {}, args); !status.ok()) return status;
  if (Status status = check_batch(config, "batch", args.batch); !status.ok()) return status;
  if (args.batch == 0) return {};
  Operands operands;
  if (Status status = validate(config, args, operands); !status.ok()) return status;
  compute(config, pointers, operands);
  return {};
}

}  // namespace

extern "C" {

int gatefold_swap_ffn_weight(const gatefold_swap_ffn_desc* desc, int index, gatefold_swap_ffn_tensor* tensor) {
  if (desc == nullptr || tensor == nullptr || index < 0 || index >= GATEFOLD_SWAP_FFN_WEIGHTS) return 0;
  return guarded([&]() -> Status {
           swap_ffn::Config config;
           if (Status status = validate(*desc, config); !status.ok()) return status;
           *tensor = swap_ffn::tensor_of(config, static_cast<swap_ffn::Weight>(index));
           return {};
         }) == GATEFOLD_SUCCESS
             ? 1
             : 0;
}

gatefold_status gatefold_swap_ffn_plan_create(const gatefold_swap_ffn_desc* desc, gatefold_swap_ffn_plan** plan) {
  return guarded([&] { return create(desc, plan); });
}

void gatefold_swap_ffn_plan_destroy(gatefold_swap_ffn_plan* plan) { delete plan; }

gatefold_status gatefold_swap_ffn_prepared_size(const gatefold_swap_ffn_plan* plan, size_t* bytes) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_argument("gatefold_swap_ffn_prepared_size", "plan");
    if (bytes == nullptr) return null_argument("gatefold_swap_ffn_prepared_size", "bytes");
    *bytes = plan->executor->prepared_size();
    return {};
  });
}

gatefold_status gatefold_swap_ffn_prepare(const gatefold_swap_ffn_plan* plan, const gatefold_swap_ffn_weights* weights,
                                          void* prepared, size_t prepared_size, void* stream) {
  return guarded([&] { return prepare(plan, weights, prepared, prepared_size, stream); });
}

gatefold_status gatefold_swap_ffn_workspace_size(const gatefold_swap_ffn_plan* plan, int64_t max_batch, size_t* bytes) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_argument("gatefold_swap_ffn_workspace_size", "plan");
    if (bytes == nullptr) return null_argument("gatefold_swap_ffn_workspace_size", "bytes");
    if (Status status = check_batch(plan->config, "max_batch", max_batch); !status.ok()) return status;
    *bytes = max_batch == 0 ? 0 : plan->executor->workspace_size(max_batch);
    return {};
  });
}

gatefold_status gatefold_swap_ffn_step(const gatefold_swap_ffn_plan* plan, const gatefold_swap_ffn_args* args) {
  return guarded([&] { return step(plan, args); });
}

gatefold_status gatefold_swap_ffn_check_stream_map(const uint8_t* stream_map, int64_t count) {
  return guarded([&]() -> Status {
    if (stream_map == nullptr) return null_argument("gatefold_swap_ffn_check_stream_map", "stream_map");
    return check_stream_map(stream_map, count);
  });
}

int gatefold_swap_ffn_pass(const gatefold_swap_ffn_plan* plan, int64_t batch, int index,
                           gatefold_swap_ffn_pass_info* pass) {
  if (plan == nullptr || pass == nullptr || index < 0) return 0;
  bool found = false;
  guarded([&]() -> Status {
    if (Status status = check_batch(plan->config, "batch", batch); !status.ok()) return status;
    const std::vector<gatefold_swap_ffn_pass_info> passes = plan->executor->passes(batch);
    const auto i = static_cast<std::size_t>(index);
    found = i < passes.size();
    if (found) *pass = passes[i];
    return {};
  });
  return found ? 1 : 0;
}

gatefold_status gatefold_swap_ffn_reference(const gatefold_swap_ffn_desc* desc,
                                            const gatefold_swap_ffn_weights* weights,
                                            const gatefold_swap_ffn_reference_args* args) {
  return guarded([&] {
    return without_plan<swap_ffn::ReferenceOperands>("gatefold_swap_ffn_reference", desc, weights, args,
                                                     swap_ffn::reference);
  });
}

gatefold_status gatefold_swap_ffn_check(const gatefold_swap_ffn_desc* desc, const gatefold_swap_ffn_weights* weights,
                                        const gatefold_swap_ffn_check_args* args, gatefold_data data,
                                        gatefold_swap_ffn_report* report) {
  return guarded([&]() -> Status {
    if (report == nullptr) return null_argument("gatefold_swap_ffn_check", "report");
    if (const int kind = enum_number(data); kind != GATEFOLD_DATA_ANY && kind != GATEFOLD_DATA_ZERO_MEAN) {
      return invalid("data: ", kind, " is not a gatefold_data (1 or 2)");
    }
    gatefold_swap_ffn_report found{};
    Status status = without_plan<swap_ffn::CheckOperands>(
        "gatefold_swap_ffn_check", desc, weights, args, [&](const auto& config, const auto& pointers, const auto& o) {
          found = swap_ffn::check(config, pointers, o, data == GATEFOLD_DATA_ZERO_MEAN);
        });
    if (status.ok()) *report = found;
    return status;
  });
}

}  // extern "C"
