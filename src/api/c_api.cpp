#include <algorithm>
#include <limits>
#include <string>

#include "api/enum_number.hpp"
#include "api/guarded.hpp"
#include "api/plan.hpp"
#include "api/validate.hpp"
#include "dispatch/check.hpp"
#include "dispatch/devices.hpp"
#include "dispatch/registry.hpp"

using namespace gatefold;

namespace {

constexpr std::uintptr_t workspace_alignment = 256;

bool is_op(const gatefold_op& op) {
  return enum_number(op) >= GATEFOLD_OP_ACT_AND_MUL && enum_number(op) <= GATEFOLD_OP_MLP;
}

bool is_device(const gatefold_device& device) {
  return enum_number(device) >= GATEFOLD_DEVICE_CPU && enum_number(device) <= GATEFOLD_DEVICE_CUDA;
}

Status unknown_device(const gatefold_device& device) {
  return invalid("device: ", enum_number(device), " is not a gatefold_device (1 or 2)");
}

// No run has a negative number of tokens; a question about one gets the answer for none.
std::int64_t at_least_none(std::int64_t tokens) { return std::max<std::int64_t>(tokens, 0); }

// Whatever an op keeps for its tokens, in bytes, fits 64 bits: an mlp's h too, which no argument points at.
Status check_tokens(const Problem& problem, const char* name, std::int64_t tokens) {
  const std::int64_t widest = std::max(problem.intermediate_size, problem.hidden_size);
  if (widest > 0 && tokens > std::numeric_limits<std::int64_t>::max() / 64 / widest) {
    return invalid(name, ": ", tokens, " x ", widest, " overflows 64-bit indexing");
  }
  return {};
}

Status check_workspace(const gatefold_plan& plan, const Operands& operands) {
  const std::size_t needed = plan.selection.workspace_size(operands.tokens);
  if (operands.workspace_size < needed) {
    return {GATEFOLD_ERROR_WORKSPACE, concat("workspace: ", operands.workspace_size, " bytes given, ", needed,
                                             " needed for ", operands.tokens, " tokens")};
  }
  if (needed == 0) return {};
  if (operands.workspace == nullptr) {
    return {GATEFOLD_ERROR_WORKSPACE, concat("workspace: null pointer, ", needed, " bytes needed")};
  }
  if (reinterpret_cast<std::uintptr_t>(operands.workspace) % workspace_alignment != 0) {
    return {GATEFOLD_ERROR_WORKSPACE, concat("workspace: address ", static_cast<const void*>(operands.workspace),
                                             " is not aligned to ", workspace_alignment, " bytes")};
  }
  return {};
}

Status create(const gatefold_desc* desc, gatefold_plan** plan) {
  if (desc == nullptr) return null_argument("gatefold_plan_create", "desc");
  if (plan == nullptr) return null_argument("gatefold_plan_create", "plan");
  auto made = std::make_unique<gatefold_plan>();
  gatefold_desc known;
  if (Status status = read(*desc, known); !status.ok()) return status;
  if (Status status = validate(known, made->problem); !status.ok()) return status;
  const Problem& problem = made->problem;
  std::string forced;
  if (known.implementation != nullptr) {
    forced = known.implementation;
  } else if (Status status = forced_by_environment(problem.op, problem.device, forced); !status.ok()) {
    return status;
  }
  if (Status status = Selection::make(problem, forced, made->selection); !status.ok()) return status;
  *plan = made.release();
  return {};
}

Status run(const gatefold_plan* plan, const gatefold_args* args) {
  if (plan == nullptr) return null_argument("gatefold_run", "plan");
  if (args == nullptr) return null_argument("gatefold_run", "args");
  gatefold_args known;
  if (Status status = read(*args, known); !status.ok()) return status;
  Operands operands;
  if (Status status = validate(plan->problem, known, operands); !status.ok()) return status;
  if (empty_output(plan->problem, operands.tokens)) return {};
  if (Status status = check_tokens(plan->problem, "tokens", operands.tokens); !status.ok()) return status;
  if (Status status = check_workspace(*plan, operands); !status.ok()) return status;
  return plan->selection.run(operands);
}

Status check(const gatefold_desc* desc, const gatefold_args* args, gatefold_data data, gatefold_error_report* out,
             double* truth) {
  if (desc == nullptr) return null_argument("gatefold_check", "desc");
  if (args == nullptr) return null_argument("gatefold_check", "args");
  if (out == nullptr) return null_argument("gatefold_check", "report");
  if (const int kind = enum_number(data); kind != GATEFOLD_DATA_ANY && kind != GATEFOLD_DATA_ZERO_MEAN) {
    return invalid("data: ", kind, " is not a gatefold_data (1 or 2)");
  }
  gatefold_desc known_desc;
  if (Status status = read(*desc, known_desc); !status.ok()) return status;
  Problem problem;
  if (Status status = validate(known_desc, problem); !status.ok()) return status;
  if (problem.op == Op::mlp) return unsupported("op: mlp is checked as gate_up and then gemm, not at once");
  problem.device = Device::cpu;
  gatefold_args known_args;
  if (Status status = read(*args, known_args); !status.ok()) return status;
  known_args.stream = nullptr;
  Operands operands;
  if (Status status = validate(problem, known_args, operands); !status.ok()) return status;
  *out = gatefold::check(problem, operands, data == GATEFOLD_DATA_ZERO_MEAN, truth);
  return {};
}

}  // namespace

extern "C" {

const char* gatefold_last_error(void) {
  const ThreadStrings& strings = thread_strings();
  return strings.fixed_error != nullptr ? strings.fixed_error : strings.error.c_str();
}

const char* gatefold_version(void) { return GATEFOLD_VERSION_STRING; }

gatefold_status gatefold_plan_create(const gatefold_desc* desc, gatefold_plan** plan) {
  return guarded([&] { return create(desc, plan); });
}

void gatefold_plan_destroy(gatefold_plan* plan) { delete plan; }

gatefold_status gatefold_plan_workspace_size(const gatefold_plan* plan, int64_t max_tokens, size_t* bytes) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_argument("gatefold_plan_workspace_size", "plan");
    if (bytes == nullptr) return null_argument("gatefold_plan_workspace_size", "bytes");
    if (max_tokens < 0) return invalid("max_tokens: ", max_tokens, " is negative");
    if (Status status = check_tokens(plan->problem, "max_tokens", max_tokens); !status.ok()) return status;
    *bytes = max_tokens == 0 ? 0 : plan->selection.workspace_size(max_tokens);
    return {};
  });
}

gatefold_status gatefold_run(const gatefold_plan* plan, const gatefold_args* args) {
  return guarded([&] { return run(plan, args); });
}

const char* gatefold_plan_implementation(const gatefold_plan* plan, int64_t tokens) {
  // Names are string literals, so data() ends with a 0.
  return plan == nullptr ? "" : plan->selection.choose(at_least_none(tokens)).implementation->name().data();
}

int gatefold_plan_candidate(const gatefold_plan* plan, int64_t tokens, int index, gatefold_candidate* candidate) {
  if (plan == nullptr || candidate == nullptr || index < 0) return 0;
  const auto& candidates = plan->selection.candidates();
  const auto i = static_cast<std::size_t>(index);
  if (i >= candidates.size()) return 0;
  const gatefold_status status = guarded([&]() -> Status {
    const std::int64_t run_tokens = at_least_none(tokens);
    thread_strings().answer = plan->selection.reason(i, run_tokens);
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): a name is a literal
    *candidate = {.name = candidates[i].implementation->name().data(),
                  .chosen = &candidates[i] == &plan->selection.choose(run_tokens) ? 1 : 0,
                  .eligible = candidates[i].verdict.eligible ? 1 : 0,
                  .reason = thread_strings().answer.c_str()};
    return {};
  });
  return status == GATEFOLD_SUCCESS ? 1 : 0;
}

const char* gatefold_plan_kernel(const gatefold_plan* plan, const char* implementation, int index) {
  if (plan == nullptr || implementation == nullptr || index < 0) return nullptr;
  bool found = false;
  guarded([&]() -> Status {
    const std::vector<std::string> kernels = plan->selection.kernels(plan->problem, implementation);
    const auto i = static_cast<std::size_t>(index);
    found = i < kernels.size();
    if (found) thread_strings().answer = kernels[i];
    return {};
  });
  return found ? thread_strings().answer.c_str() : nullptr;
}

const char* gatefold_implementation_name(gatefold_op op, gatefold_device device, int index) {
  if (!is_op(op) || !is_device(device)) return nullptr;
  const auto list = implementations(static_cast<Op>(op), static_cast<Device>(device));
  const auto i = static_cast<std::size_t>(index);
  return index >= 0 && i < list.size() ? list[i]->name().data() : nullptr;
}

int gatefold_device_count(gatefold_device device, const char** why) {
  int count = 0;
  guarded([&]() -> Status {
    if (is_device(device)) {
      count = device_count(static_cast<Device>(device), thread_strings().answer);
    } else {
      thread_strings().answer = unknown_device(device).message();
    }
    if (why != nullptr) *why = thread_strings().answer.c_str();
    return {};
  });
  return count;
}

gatefold_status gatefold_device_query(gatefold_device device, int index, gatefold_device_info* info) {
  return guarded([&]() -> Status {
    if (info == nullptr) return null_argument("gatefold_device_query", "info");
    if (!is_device(device)) return unknown_device(device);
    return device_query(static_cast<Device>(device), index, *info);
  });
}

gatefold_status gatefold_check(const gatefold_desc* desc, const gatefold_args* args, gatefold_data data,
                               gatefold_error_report* report, double* truth) {
  return guarded([&] { return check(desc, args, data, report, truth); });
}

}  // extern "C"
