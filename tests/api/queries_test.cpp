#include <limits>
#include <string>
#include <thread>

#include "api/valid_call.hpp"

namespace gatefold::test {
namespace {

class PlanOf {
 public:
  explicit PlanOf(const gatefold_desc& desc) {
    EXPECT_EQ(gatefold_plan_create(&desc, &plan_), GATEFOLD_SUCCESS) << gatefold_last_error();
  }
  PlanOf(const PlanOf&) = delete;
  PlanOf& operator=(const PlanOf&) = delete;
  ~PlanOf() { gatefold_plan_destroy(plan_); }
  gatefold_plan* get() const { return plan_; }

 private:
  gatefold_plan* plan_ = nullptr;
};

TEST(Queries, VersionIsTheHeaders) {
  const std::string expected = std::to_string(GATEFOLD_VERSION_MAJOR) + "." + std::to_string(GATEFOLD_VERSION_MINOR) +
                               "." + std::to_string(GATEFOLD_VERSION_PATCH);
  EXPECT_EQ(gatefold_version(), expected);
}

TEST(Queries, ErrorsAreKeptPerThreadAndClearedBySuccess) {
  EXPECT_EQ(gatefold_plan_create(nullptr, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_STRNE(gatefold_last_error(), "");
  std::thread([] { EXPECT_STREQ(gatefold_last_error(), ""); }).join();
  EXPECT_STRNE(gatefold_last_error(), "");
  const PlanOf plan(ValidCall(GATEFOLD_OP_GEMM).desc);
  EXPECT_STREQ(gatefold_last_error(), "");
}

TEST(Queries, WorkspaceSize) {
  const PlanOf plan(ValidCall(GATEFOLD_OP_MLP).desc);
  std::size_t bytes = 123;
  EXPECT_EQ(gatefold_plan_workspace_size(plan.get(), 0, &bytes), GATEFOLD_SUCCESS);
  EXPECT_EQ(bytes, 0U);
  std::size_t previous = 0;
  for (const std::int64_t tokens : {1, 2, 10, 1000}) {
    EXPECT_EQ(gatefold_plan_workspace_size(plan.get(), tokens, &bytes), GATEFOLD_SUCCESS);
    EXPECT_GE(bytes, previous);
    previous = bytes;
  }
  bytes = 123;
  EXPECT_EQ(gatefold_plan_workspace_size(plan.get(), -1, &bytes), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(gatefold_last_error()).find("max_tokens: -1"), std::string::npos);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(gatefold_plan_workspace_size(plan.get(), most, &bytes), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(gatefold_last_error()).find("overflow"), std::string::npos);
  EXPECT_EQ(gatefold_plan_workspace_size(nullptr, 1, &bytes), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gatefold_plan_workspace_size(plan.get(), 1, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, 123U);
}

TEST(Queries, CandidatesAndNames) {
  const PlanOf plan(ValidCall(GATEFOLD_OP_GATE_UP).desc);
  for (const std::int64_t tokens : {std::int64_t{-5}, std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 50}) {
    int chosen = 0;
    int count = 0;
    gatefold_candidate candidate{};
    for (; gatefold_plan_candidate(plan.get(), tokens, count, &candidate) != 0; ++count) {
      EXPECT_STREQ(candidate.name, gatefold_implementation_name(GATEFOLD_OP_GATE_UP, GATEFOLD_DEVICE_CPU, count));
      EXPECT_STRNE(candidate.reason, "");
      if (candidate.chosen == 0) continue;
      ++chosen;
      EXPECT_EQ(candidate.eligible, 1);
      EXPECT_STREQ(candidate.name, gatefold_plan_implementation(plan.get(), tokens));
    }
    EXPECT_EQ(chosen, 1);
    EXPECT_EQ(gatefold_implementation_name(GATEFOLD_OP_GATE_UP, GATEFOLD_DEVICE_CPU, count), nullptr);
    EXPECT_STREQ(gatefold_implementation_name(GATEFOLD_OP_GATE_UP, GATEFOLD_DEVICE_CPU, count - 1), "reference");
  }
  gatefold_candidate candidate{};
  EXPECT_EQ(gatefold_plan_candidate(plan.get(), 1, -1, &candidate), 0);
  EXPECT_EQ(gatefold_plan_candidate(nullptr, 1, 0, &candidate), 0);
  EXPECT_EQ(gatefold_plan_candidate(plan.get(), 1, 0, nullptr), 0);
  EXPECT_STREQ(gatefold_plan_implementation(nullptr, 1), "");
  EXPECT_EQ(gatefold_plan_kernel(plan.get(), "reference", 0), nullptr) << "it has but one";
  EXPECT_EQ(gatefold_plan_kernel(plan.get(), "elsewhere", 0), nullptr);
  EXPECT_EQ(gatefold_plan_kernel(plan.get(), nullptr, 0), nullptr);
  EXPECT_EQ(gatefold_plan_kernel(plan.get(), "reference", -1), nullptr);
  EXPECT_EQ(gatefold_plan_kernel(nullptr, "reference", 0), nullptr);
  EXPECT_EQ(gatefold_implementation_name(GATEFOLD_OP_GATE_UP, GATEFOLD_DEVICE_CPU, -1), nullptr);
}

TEST(Queries, Devices) {
  EXPECT_EQ(gatefold_device_count(GATEFOLD_DEVICE_CPU, nullptr), 1);
  gatefold_device_info info{};
  ASSERT_EQ(gatefold_device_query(GATEFOLD_DEVICE_CPU, 0, &info), GATEFOLD_SUCCESS);
  EXPECT_STRNE(info.name, "");
  EXPECT_LT(strnlen(info.name, sizeof info.name), sizeof info.name);
  EXPECT_GE(info.threads, 1);
  EXPECT_GT(info.memory_bytes, 0U);
  EXPECT_EQ(gatefold_device_query(GATEFOLD_DEVICE_CPU, 1, &info), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(gatefold_last_error()).find("index: 1"), std::string::npos) << gatefold_last_error();
  EXPECT_EQ(gatefold_device_query(GATEFOLD_DEVICE_CPU, -1, &info), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gatefold_device_query(GATEFOLD_DEVICE_CPU, 0, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  const char* why = nullptr;
  const bool no_gpu = gatefold_device_count(GATEFOLD_DEVICE_CUDA, &why) == 0;
  EXPECT_EQ(no_gpu, std::string(why) != "");
}

TEST(Queries, CheckRefusesWhatRunRefuses) {
  ValidCall call(GATEFOLD_OP_GATE_UP);
  gatefold_error_report report{};
  EXPECT_EQ(gatefold_check(nullptr, &call.args, GATEFOLD_DATA_ANY, &report, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gatefold_check(&call.desc, nullptr, GATEFOLD_DATA_ANY, &report, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gatefold_check(&call.desc, &call.args, GATEFOLD_DATA_ANY, nullptr, nullptr),
            GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gatefold_check(&call.desc, &call.args, gatefold_data{}, &report, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(gatefold_last_error()).find("data: 0"), std::string::npos);
  call.args.x = nullptr;
  EXPECT_EQ(gatefold_check(&call.desc, &call.args, GATEFOLD_DATA_ANY, &report, nullptr),
            GATEFOLD_ERROR_INVALID_ARGUMENT);
  ValidCall mlp(GATEFOLD_OP_MLP);
  EXPECT_EQ(gatefold_check(&mlp.desc, &mlp.args, GATEFOLD_DATA_ANY, &report, nullptr), GATEFOLD_ERROR_UNSUPPORTED);
}

// A plan is made of any sizes whose bytes can be counted in 63 bits, and every candidate could run it.
TEST(Queries, RowsOfAnyLengthSuitEveryImplementation) {
  for (const gatefold_op op : {GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP}) {
    for (const gatefold_dtype dtype : {GATEFOLD_DTYPE_FP32, GATEFOLD_DTYPE_BF16}) {
      for (const std::int64_t hidden_size :
           {(std::int64_t{1} << 27) + 1, std::int64_t{1} << 31, std::int64_t{1} << 32, std::int64_t{1} << 40}) {
        gatefold_desc desc = ValidCall(op).desc;
        desc.dtype = dtype;
        desc.hidden_size = hidden_size;
        desc.ld_x = desc.ld_gate = desc.ld_up = desc.ld_out = 0;
        const PlanOf plan(desc);
        gatefold_candidate candidate{};
        for (int i = 0; gatefold_plan_candidate(plan.get(), 1, i, &candidate) != 0; ++i) {
          EXPECT_EQ(candidate.eligible, 1) << candidate.name << ": " << candidate.reason;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
