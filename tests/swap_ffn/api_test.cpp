#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "swap_ffn/experiment.hpp"

// What the interface refuses, in words that name the thing and its values, before it touches anything.
namespace gatefold::test {
namespace {

void expect_message(const std::vector<std::string>& parts) {
  const std::string message = gatefold_last_error();
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

void expect_refused(const std::function<void(gatefold_swap_ffn_desc&)>& spoil, const std::vector<std::string>& parts,
                    gatefold_status status = GATEFOLD_ERROR_INVALID_ARGUMENT) {
  gatefold_swap_ffn_desc desc = small_desc(GATEFOLD_DTYPE_FP32).c_desc();
  spoil(desc);
  gatefold_swap_ffn_plan* plan = nullptr;
  EXPECT_EQ(gatefold_swap_ffn_plan_create(&desc, &plan), status);
  EXPECT_EQ(plan, static_cast<gatefold_swap_ffn_plan*>(nullptr));
  expect_message(parts);
}

TEST(SwapFfnApi, DescriptionsAreRefusedByName) {
  using Desc = gatefold_swap_ffn_desc;
  expect_refused([](Desc& d) { d.struct_size = 8; }, {"desc: struct_size 8"});
  expect_refused([](Desc& d) { d.dtype = static_cast<gatefold_dtype>(0); }, {"dtype: 0", "1 to 3"});
  expect_refused([](Desc& d) { d.device = static_cast<gatefold_device>(0); }, {"device: 0", "1 or 2"});
  expect_refused([](Desc& d) { d.hidden_size = 0; }, {"hidden_size: 0 is less than 1"});
  expect_refused([](Desc& d) { d.intermediate_size = -4; }, {"intermediate_size: -4 is less than 1"});
  expect_refused([](Desc& d) { d.cores = 0; }, {"cores: 0 is less than 1"});
  expect_refused([](Desc& d) { d.core_embed_size = 0; }, {"core_embed_size: 0 is less than 1"});
  expect_refused([](Desc& d) { d.router_width = 0; }, {"router_width: 0 is less than 1"});
  expect_refused([](Desc& d) { d.collapse_heads = 0; }, {"collapse_heads: 0 is less than 1"});
  expect_refused([](Desc& d) { d.collapse_width = 0; }, {"collapse_width: 0 is less than 1"});
  expect_refused([](Desc& d) { d.events = 0; }, {"events: 0 is less than 1"});
  expect_refused([](Desc& d) { d.k_ffn = 0; }, {"k_ffn: 0 is less than 1"});
  expect_refused([](Desc& d) { d.eps = 0.0; }, {"eps: 0 is not positive"});
  expect_refused([](Desc& d) { d.eps = std::numeric_limits<double>::quiet_NaN(); }, {"eps: nan is not positive"});
  expect_refused([](Desc& d) { d.eps = std::numeric_limits<double>::infinity(); }, {"eps: inf is not positive"});
  expect_refused([](Desc& d) { d.hidden_size = std::int64_t{1} << 60; }, {"overflow 64-bit indexing"});
  expect_refused([](Desc& d) { d.events = d.k_ffn = std::int64_t{1} << 40; }, {"events: 1099511627776", "k_ffn"});
  expect_refused([](Desc& d) { d.implementation = "fused"; }, {"implementation: \"fused\"", "on cpu: cpu"});
  expect_refused(
      [](Desc& d) {
        d.device = GATEFOLD_DEVICE_CUDA;
        d.implementation = "cpu";
      },
      {"implementation: \"cpu\"", "on cuda: fused"});
}

// By a build without CUDA, and by one with it on a machine that has no GPU.
TEST(SwapFfnApi, WithoutCudaDevicesThereIsNoStepForThem) {
  const char* why = nullptr;
  if (gatefold_device_count(GATEFOLD_DEVICE_CUDA, &why) > 0) GTEST_SKIP() << "there is one";
  expect_refused([](gatefold_swap_ffn_desc& d) { d.device = GATEFOLD_DEVICE_CUDA; }, {"device: ", "cuda"},
                 GATEFOLD_ERROR_UNSUPPORTED);
}

class SwapFfnStep : public testing::Test {
 protected:
  SwapFfnStep() : random_(test_random()), experiment_(small_desc(GATEFOLD_DTYPE_FP32), 2, random_) {}

  void expect_step_refused(const std::function<void(gatefold_swap_ffn_args&)>& spoil,
                           const std::vector<std::string>& parts,
                           gatefold_status status = GATEFOLD_ERROR_INVALID_ARGUMENT) {
    experiment_.delta.poison();
    const std::vector<std::byte> ram = experiment_.ram.bytes();
    const std::vector<std::byte> delta = experiment_.delta.bytes();
    const gatefold_swap_ffn_desc desc = experiment_.desc().c_desc();
    gatefold_swap_ffn_plan* plan = nullptr;
    ASSERT_EQ(gatefold_swap_ffn_plan_create(&desc, &plan), GATEFOLD_SUCCESS);
    gatefold_swap_ffn_args args = experiment_.args(true).c_args();
    spoil(args);
    EXPECT_EQ(gatefold_swap_ffn_step(plan, &args), status);
    expect_message(parts);
    gatefold_swap_ffn_plan_destroy(plan);
    EXPECT_EQ(experiment_.ram.bytes(), ram);
    EXPECT_EQ(experiment_.delta.bytes(), delta);
  }

  Random random_;
  SwapFfnExperiment experiment_;
};

TEST_F(SwapFfnStep, ArgumentsAreRefusedByName) {
  using Args = gatefold_swap_ffn_args;
  const auto behind = [](const void* p, int bytes) { return const_cast<char*>(static_cast<const char*>(p)) + bytes; };
  expect_step_refused([](Args& a) { a.struct_size = 1; }, {"args: struct_size 1"});
  expect_step_refused([](Args& a) { a.batch = -1; }, {"batch: -1 is negative"});
  expect_step_refused([](Args& a) { a.batch = std::int64_t{1} << 60; }, {"batch: 1152921504606846976", "overflow"});
  expect_step_refused([](Args& a) { a.prepared = nullptr; }, {"prepared: null pointer"});
  expect_step_refused([](Args& a) { a.x = nullptr; }, {"x: null pointer, expected 144 elements"});
  expect_step_refused([](Args& a) { a.ram = nullptr; }, {"ram: null pointer, expected 7488 elements"});
  expect_step_refused([](Args& a) { a.stream_map = nullptr; }, {"stream_map: null pointer, expected 26 elements"});
  expect_step_refused([](Args& a) { a.delta = nullptr; }, {"delta: null pointer"});
  expect_step_refused([&](Args& a) { a.x = behind(a.x, 1); }, {"x: address", "not aligned to the element size 4"});
  expect_step_refused([](Args& a) { a.delta = a.ram; }, {"overlap", "ram", "delta"});
  expect_step_refused([&](Args& a) { a.delta = behind(a.x, 4); }, {"delta:", "overlap x"});
  expect_step_refused([](Args& a) { a.stream = &a; }, {"stream:", "the CPU expects null"});
  expect_step_refused([](Args& a) { --a.workspace_size; }, {"workspace:", "needed"}, GATEFOLD_ERROR_WORKSPACE);
  expect_step_refused([](Args& a) { a.workspace = nullptr; }, {"workspace: null pointer"}, GATEFOLD_ERROR_WORKSPACE);
  expect_step_refused([&](Args& a) { a.workspace = behind(a.workspace, 64); }, {"workspace: address", "256"},
                      GATEFOLD_ERROR_WORKSPACE);
}

TEST_F(SwapFfnStep, AMapThatIsNoPermutationIsRefused) {
  for (const int map : {0x00, 0xff, 0xe5, 0x1a}) {
    experiment_.stream_map.data()[17] = static_cast<std::byte>(map);
    expect_step_refused([](gatefold_swap_ffn_args&) {},
                        {"stream_map: element 17 is " + std::to_string(map), "no permutation of 0 1 2 3"});
    const auto* maps = reinterpret_cast<const std::uint8_t*>(experiment_.stream_map.data());
    EXPECT_EQ(gatefold_swap_ffn_check_stream_map(maps, 17), GATEFOLD_SUCCESS);
    EXPECT_EQ(gatefold_swap_ffn_check_stream_map(maps, 26), GATEFOLD_ERROR_INVALID_ARGUMENT);
  }
}

TEST_F(SwapFfnStep, WeightsAndThePreparedBufferAreChecked) {
  gatefold_swap_ffn_weights weights = experiment_.weights();
  const auto refused = [&](WorkspaceView prepared, const std::vector<std::string>& parts) {
    EXPECT_THROW(experiment_.plan.prepare(weights, prepared), Error);
    expect_message(parts);
  };
  const WorkspaceView whole{experiment_.prepared.data(), experiment_.prepared.size()};
  refused({whole.data, whole.size - 1}, {"prepared:", "bytes given", "needed"});
  refused({nullptr, whole.size}, {"prepared: null pointer"});
  refused({static_cast<char*>(whole.data) + 16, whole.size}, {"prepared: address", "256"});
  weights.bank_w = nullptr;
  refused(whole, {"bank_w: null pointer, expected 36 elements"});
  weights = experiment_.weights();
  weights.basis = static_cast<const char*>(weights.basis) + 2;
  refused(whole, {"basis: address", "element size 4"});
  weights = experiment_.weights();
  weights.struct_size = 0;
  refused(whole, {"weights: struct_size 0"});
}

TEST_F(SwapFfnStep, NoSequencesAreNoWork) {
  gatefold_swap_ffn_args args{};
  args.struct_size = sizeof args;
  const gatefold_swap_ffn_desc desc = experiment_.desc().c_desc();
  gatefold_swap_ffn_plan* plan = nullptr;
  ASSERT_EQ(gatefold_swap_ffn_plan_create(&desc, &plan), GATEFOLD_SUCCESS);
  EXPECT_EQ(gatefold_swap_ffn_step(plan, &args), GATEFOLD_SUCCESS);
  EXPECT_EQ(gatefold_swap_ffn_step(nullptr, &args), GATEFOLD_ERROR_INVALID_ARGUMENT);
  expect_message({"gatefold_swap_ffn_step", "plan is null"});
  EXPECT_EQ(gatefold_swap_ffn_step(plan, nullptr), GATEFOLD_ERROR_INVALID_ARGUMENT);
  gatefold_swap_ffn_plan_destroy(plan);
  gatefold_swap_ffn_plan_destroy(nullptr);
}

// The check itself finds what it is for.
TEST_F(SwapFfnStep, TheCheckFindsWhatIsWrong) {
  experiment_.step();
  experiment_.expect_right();
  const std::int64_t D = experiment_.desc().hidden_size;
  const auto with = [&](Guarded& tensor, std::int64_t i, double value) {
    const std::vector<std::byte> before = tensor.bytes();
    experiment_.set_element(tensor, i, value);
    const gatefold_swap_ffn_report report = experiment_.check();
    tensor.assign(before);
    return report;
  };
  EXPECT_GT(with(experiment_.delta, 3, 100.0).violations, 0);
  EXPECT_GT(with(experiment_.states, 5, 100.0).violations, 0);
  EXPECT_GT(with(experiment_.states, (experiment_.slices() - 1) * experiment_.rows() * D, 100.0).violations, 0);
  EXPECT_EQ(with(experiment_.ram, 7, 100.0).wrong_moves, 1);
  std::byte& decision = experiment_.decisions.data()[4];
  decision ^= std::byte{4};
  const gatefold_swap_ffn_report report = experiment_.check();
  EXPECT_GT(report.wrong_decisions + report.undecided_against, 0);
  // The ram or the map says so, or, where a later event stores to the same bank again, the MLP of a wrong state.
  EXPECT_GT(report.wrong_moves + report.violations, 0);
}

// Names and shapes, as the weights' struct has them.
TEST(SwapFfnApi, WeightsHaveNamesAndShapes) {
  const gatefold_swap_ffn_desc desc = small_desc(GATEFOLD_DTYPE_BF16).c_desc();
  gatefold_swap_ffn_tensor tensor{};
  ASSERT_EQ(gatefold_swap_ffn_weight(&desc, 17, &tensor), 1);
  EXPECT_STREQ(tensor.name, "basis");
  EXPECT_EQ(tensor.rank, 3);
  EXPECT_EQ(tensor.shape[0], 3);
  EXPECT_EQ(tensor.shape[1], 11);
  EXPECT_EQ(tensor.shape[2], 72);
  EXPECT_EQ(gatefold_swap_ffn_weight(&desc, GATEFOLD_SWAP_FFN_WEIGHTS, &tensor), 0);
  EXPECT_EQ(gatefold_swap_ffn_weight(&desc, -1, &tensor), 0);
}

}  // namespace
}  // namespace gatefold::test
