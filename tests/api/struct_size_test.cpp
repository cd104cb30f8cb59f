#include <algorithm>
#include <cstring>
#include <memory>

#include "api/valid_call.hpp"

// Callers that know less or more of a struct than this library does. Their structs lie on the heap, as large as they
// say and no larger, so that the address sanitizer sees a byte read too many.
namespace gatefold::test {
namespace {

// gatefold_desc and gatefold_args of 0.1.0, the first version.
constexpr std::size_t first_desc = 112;
constexpr std::size_t first_args = 80;

struct Destroy {
  void operator()(gatefold_plan* plan) const { gatefold_plan_destroy(plan); }
};
using PlanPointer = std::unique_ptr<gatefold_plan, Destroy>;

// A struct as somebody knows it who takes it for `size` bytes: its first ones, or zeros behind it.
class Known {
 public:
  template <class Struct>
  Known(const Struct& whole, std::size_t size) : bytes_(std::make_unique<std::byte[]>(size)) {
    std::memcpy(bytes_.get(), &whole, std::min(size, sizeof whole));
    std::memcpy(bytes_.get(), &size, sizeof size);
  }

  template <class Struct>
  const Struct* as() const {
    return reinterpret_cast<const Struct*>(bytes_.get());
  }
  void set(std::size_t byte, int value) { bytes_[byte] = static_cast<std::byte>(value); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

struct Outcome {
  gatefold_status status;
  std::string message;
  std::vector<float> out;
};

// Plans, runs and checks.
Outcome compute(ValidCall& call, const Known& desc, const Known& args) {
  gatefold_plan* made = nullptr;
  gatefold_status status = gatefold_plan_create(desc.as<gatefold_desc>(), &made);
  const PlanPointer plan(made);
  if (status == GATEFOLD_SUCCESS) status = gatefold_run(plan.get(), args.as<gatefold_args>());
  if (status == GATEFOLD_SUCCESS && call.desc.op != GATEFOLD_OP_MLP) {
    gatefold_error_report report{};
    status = gatefold_check(desc.as<gatefold_desc>(), args.as<gatefold_args>(), GATEFOLD_DATA_ANY, &report, nullptr);
    EXPECT_EQ(report.violations, 0);
  }
  return {status, gatefold_last_error(), call.out};
}

constexpr gatefold_op ops[] = {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP,
                               GATEFOLD_OP_MLP};

TEST(StructSize, OfTheFirstVersionAndOfALaterOneComputeTheSame) {
  for (const gatefold_op op : ops) {
    ValidCall today(op);
    const Outcome expected = compute(today, Known(today.desc, sizeof today.desc), Known(today.args, sizeof today.args));
    ASSERT_EQ(expected.status, GATEFOLD_SUCCESS) << expected.message;
    for (const auto& [desc_size, args_size] :
         {std::pair{first_desc, first_args}, std::pair{sizeof(gatefold_desc) + 8, sizeof(gatefold_args) + 8},
          std::pair{sizeof(gatefold_desc) + 1, sizeof(gatefold_args) + 1},
          std::pair{std::size_t{4096}, std::size_t{4096}}}) {
      ValidCall call(op);
      const Outcome outcome = compute(call, Known(call.desc, desc_size), Known(call.args, args_size));
      EXPECT_EQ(outcome.status, GATEFOLD_SUCCESS) << outcome.message;
      EXPECT_EQ(outcome.out, expected.out) << desc_size << " bytes of desc, " << args_size << " of args";
    }
  }
}

TEST(StructSize, WhatThisLibraryDoesntKnowMustBeZero) {
  const ValidCall before(GATEFOLD_OP_GATE_UP);
  for (const std::size_t behind : {0U, 5U, 7U}) {
    ValidCall call(GATEFOLD_OP_GATE_UP);
    Known desc(call.desc, sizeof call.desc + 8);
    const Known args(call.args, sizeof call.args);
    desc.set(sizeof call.desc + behind, 3);
    const Outcome outcome = compute(call, desc, args);
    EXPECT_EQ(outcome.status, GATEFOLD_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(outcome.message, "desc: struct_size " + std::to_string(sizeof call.desc + 8) + " exceeds the " +
                                   std::to_string(sizeof call.desc) + " bytes that this library knows, and byte " +
                                   std::to_string(sizeof call.desc + behind) + " is 3, not 0");
  }
  ValidCall call(GATEFOLD_OP_GATE_UP);
  const Known desc(call.desc, sizeof call.desc);
  Known args(call.args, sizeof call.args + 8);
  args.set(sizeof call.args + 7, 255);
  const Outcome outcome = compute(call, desc, args);
  EXPECT_EQ(outcome.status, GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(outcome.message.find("args: struct_size"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("is 255, not 0"), std::string::npos) << outcome.message;
  EXPECT_EQ(outcome.out, before.out) << "the output was touched";
}

TEST(StructSize, SizesThatNoVersionHasHad) {
  const auto expect_none = [](const ValidCall& call, const Known& desc, const Known& args, const char* name) {
    ValidCall same = call;
    const Outcome outcome = compute(same, desc, args);
    EXPECT_EQ(outcome.status, GATEFOLD_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(outcome.message.find(std::string(name) + ": struct_size"), std::string::npos) << outcome.message;
    EXPECT_NE(outcome.message.find("none that it has had"), std::string::npos) << outcome.message;
  };
  const ValidCall call(GATEFOLD_OP_GATE_UP);
  for (const std::size_t size : {std::size_t{8}, first_args, first_desc - 8, first_desc - 1, first_desc + 1}) {
    if (size == sizeof call.desc) continue;
    if (size < sizeof call.desc) expect_none(call, Known(call.desc, size), Known(call.args, sizeof call.args), "desc");
  }
  for (const std::size_t size : {std::size_t{8}, first_args - 8, first_args - 1, first_args + 1}) {
    if (size < sizeof call.args) expect_none(call, Known(call.desc, sizeof call.desc), Known(call.args, size), "args");
  }
}

}  // namespace
}  // namespace gatefold::test
