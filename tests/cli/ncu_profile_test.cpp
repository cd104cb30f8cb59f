#include "cli/ncu_profile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/files.hpp"
#include "checkpoint/input_error.hpp"

// The CSV of Nsight Compute: a fixture with the end of a fused step, a whole one of one event and two MLPs, and an
// unfused one of a single MLP whose last product is two kernels.
namespace gatefold::cli {
namespace {

constexpr const char* fixture = GATEFOLD_NCU_FIXTURE;

// Of this process: each test is one, and several run at a time.
const checkpoint::test::TemporaryFolder& own_folder() {
  static const checkpoint::test::TemporaryFolder folder;
  return folder;
}

const PassProfile& of(const std::vector<PassProfile>& profiles, const std::string& pass) {
  static const PassProfile none{};
  for (const PassProfile& profile : profiles) {
    if (profile.pass == pass) return profile;
  }
  ADD_FAILURE() << "no pass " << pass;
  return none;
}

// The fixture with something replaced, in a file of its own.
std::string with(const std::string& what, const std::string& by) {
  std::ifstream in(fixture);
  std::string text(std::istreambuf_iterator<char>(in), {});
  std::size_t replaced = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
    ++replaced;
  }
  EXPECT_GT(replaced, 0U) << what;
  std::string file = own_folder() / "profile.csv";
  std::ofstream(file) << text;
  return file;
}

void expect_refused(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "not refused";
  } catch (const checkpoint::InputError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << " lacks " << part;
  }
}

TEST(NcuProfile, ReadsUnitsAndThousands) {
  const std::vector<KernelProfile> kernels = read_ncu_csv(fixture);
  ASSERT_EQ(kernels.size(), 20U);
  const KernelProfile& start = kernels[1];
  EXPECT_NE(start.name.find("swap_ffn::start_kernel<__nv_bfloat16, true>("), std::string::npos) << start.name;
  EXPECT_DOUBLE_EQ(start.seconds, 2.5e-6);
  EXPECT_DOUBLE_EQ(start.read_bytes, 4.25e6);
  EXPECT_DOUBLE_EQ(start.written_bytes, 12.5e3);
  EXPECT_DOUBLE_EQ(start.memory_share, 0.3125);
  EXPECT_DOUBLE_EQ(kernels[6].written_bytes, 1250.75e3);
}

TEST(NcuProfile, ReadsBytesThatAreNotScaled) {
  const std::vector<KernelProfile> kernels = read_ncu_csv(with("\"Mbyte\"", "\"byte\""));
  EXPECT_DOUBLE_EQ(kernels[1].read_bytes, 4.25);
}

// What ncu --replay-mode app-range writes.
std::string of_ranges(int ranges, const std::string& more = "") {
  std::string file = own_folder() / "ranges.csv";
  std::ofstream out(file);
  out << "==PROF== Profiling \"range\" - 0: 0%....50%....100% - 1 pass\n"
      << R"("ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum")" << "\n"
      << R"("","","byte","byte")" << "\n";
  for (int i = 0; i < ranges; ++i) out << '"' << i << R"(","range",")" << i + 1 << R"(,000,000","500")" << "\n";
  out << more;
  return file;
}

TEST(NcuProfile, ReadsWholeSteps) {
  const std::string file = of_ranges(2);
  const std::optional<StepProfiles> steps = profile_of_steps(read_ncu_csv(file), file);
  ASSERT_TRUE(steps);
  EXPECT_DOUBLE_EQ(steps->fused.read_bytes, 1e6);
  EXPECT_DOUBLE_EQ(steps->unfused.read_bytes, 2e6);
  EXPECT_DOUBLE_EQ(steps->unfused.written_bytes, 500.0);
  EXPECT_FALSE(profile_of_steps(read_ncu_csv(fixture), fixture));
  EXPECT_FALSE(profile_of_steps({}, ""));
}

TEST(NcuProfile, RefusesRangesThatAreNoTrace) {
  for (const int ranges : {1, 3}) {
    const std::string file = of_ranges(ranges);
    expect_refused([&] { profile_of_steps(read_ncu_csv(file), file); }, std::to_string(ranges) + " ranges and 0");
  }
  const std::string file = of_ranges(2, "\"2\",\"void gatefold::cuda::sm90::kernel<1>()\",\"5\",\"5\"\n");
  expect_refused([&] { profile_of_steps(read_ncu_csv(file), file); }, "2 ranges and 1 kernels");
}

TEST(NcuProfile, TellsTheFusedStepByItsKernels) {
  const std::vector<PassProfile> profiles = profile_of_fused(read_ncu_csv(fixture), fixture);
  ASSERT_EQ(profiles.size(), 8U);
  const PassProfile& gate_up = of(profiles, "gate_up, 1/rms, silu");
  EXPECT_EQ(gate_up.kernels, 2);
  EXPECT_DOUBLE_EQ(gate_up.sum.read_bytes, 16.5e6);
  EXPECT_DOUBLE_EQ(gate_up.sum.written_bytes, 1350.75e3);
  EXPECT_DOUBLE_EQ(gate_up.sum.seconds, 24e-6);
  EXPECT_DOUBLE_EQ(gate_up.sum.tensor_core_share, 0.85);
  EXPECT_DOUBLE_EQ(of(profiles, "down: gemm").sum.read_bytes, 8.25e6);
  EXPECT_DOUBLE_EQ(of(profiles, "rms").sum.seconds, 2e-6);
  EXPECT_EQ(of(profiles, "start").kernels, 1);
  EXPECT_DOUBLE_EQ(of(profiles, "collapse: decoder").sum.read_bytes, 0.45e6);
}

TEST(NcuProfile, TellsSeveralMlpsInOneLaunchFromProducts) {
  const std::string file = with("swap_ffn::measure_kernel", "sm90::chain_kernel");
  const std::vector<PassProfile> profiles = profile_of_fused(read_ncu_csv(file), file);
  EXPECT_EQ(of(profiles, "MLPs of an event").kernels, 1);
  EXPECT_DOUBLE_EQ(of(profiles, "MLPs of an event").sum.seconds, 2e-6);
  EXPECT_EQ(of(profiles, "gate_up, 1/rms, silu").kernels, 2);
}

TEST(NcuProfile, TellsTheUnfusedStepByItsOrder) {
  const std::vector<PassProfile> profiles = profile_of_unfused(
      read_ncu_csv(fixture), {{"start"}, {"rms"}, {"gemm gate", true}, {"gemm up", true}, {"act"}, {"gemm down", true}},
      fixture);
  ASSERT_EQ(profiles.size(), 6U);
  EXPECT_EQ(profiles.front().pass, "start");
  EXPECT_DOUBLE_EQ(of(profiles, "gemm gate").sum.read_bytes, 8e6);
  EXPECT_DOUBLE_EQ(of(profiles, "gemm up").sum.read_bytes, 8.5e6);
  EXPECT_EQ(of(profiles, "gemm down").kernels, 2);
  EXPECT_NEAR(of(profiles, "gemm down").sum.seconds, 10e-6, 1e-12);
  EXPECT_NEAR(of(profiles, "gemm down").sum.tensor_core_share, 0.54, 1e-12);
}

// As ncu 2025.3 does on its own account.
TEST(NcuProfile, TellsBothStepsWhereTheFirstNamespaceIsLeftOut) {
  const std::string file = with("gatefold::", "void ");
  const std::vector<KernelProfile> kernels = read_ncu_csv(file);
  EXPECT_EQ(of(profile_of_fused(kernels, file), "gate_up, 1/rms, silu").kernels, 2);
  const std::vector<PassProfile> unfused = profile_of_unfused(
      kernels, {{"start"}, {"rms"}, {"gemm gate", true}, {"gemm up", true}, {"act"}, {"gemm down", true}}, file);
  EXPECT_EQ(unfused.size(), 6U);
  EXPECT_EQ(of(unfused, "gemm down").kernels, 2);
}

TEST(NcuProfile, RefusesAnotherOrder) {
  const std::vector<KernelProfile> kernels = read_ncu_csv(fixture);
  expect_refused([&] { profile_of_unfused(kernels, {{"start"}, {"silu"}}, fixture); }, "pass \"silu\"");
  expect_refused(
      [&] { profile_of_unfused(kernels, {{"act"}, {"one", true}, {"two", true}, {"three", true}}, fixture); },
      "3 products from \"one\" on, but 2 kernels");
  const std::string file = with("swap_ffn::start_kernel", "swap_ffn::other_kernel");
  expect_refused([&] { profile_of_fused(read_ncu_csv(file), file); }, "but not its first");
}

TEST(NcuProfile, RefusesWhatIsNoProfile) {
  expect_refused([] { read_ncu_csv("/nowhere/a.csv"); }, "/nowhere/a.csv: cannot be opened");
  expect_refused([] { read_ncu_csv(with("\"ID\"", "\"Number\"")); }, "has no line that begins with \"ID\"");
  expect_refused([] { read_ncu_csv(with("dram__bytes_read.sum", "dram__sectors_read.sum")); },
                 "has no column \"dram__bytes_read.sum\"");
  expect_refused([] { read_ncu_csv(with("\"Mbyte\"", "\"furlong\"")); }, "unit \"furlong\"");
  expect_refused([] { read_ncu_csv(with("\"4.25\"", "\"n/a\"")); }, "dram__bytes_read.sum: \"n/a\" is not a number");
  expect_refused([] { read_ncu_csv(with("\"node\",", "")); }, "15 fields, but 16 columns");
}

// As ncu writes them by default.
TEST(NcuProfile, NamesMayLackTheirFirstNamespaces) {
  const std::string file = with("gatefold::cuda::", "");
  EXPECT_EQ(profile_of_fused(read_ncu_csv(file), file).size(), profile_of_fused(read_ncu_csv(fixture), fixture).size());
}

TEST(NcuProfile, MayLackEverythingButTheReads) {
  const std::string file = with("gpu__time_duration.sum", "gpu__other.sum");
  const std::vector<PassProfile> profiles = profile_of_fused(read_ncu_csv(file), file);
  EXPECT_DOUBLE_EQ(of(profiles, "gate_up, 1/rms, silu").sum.read_bytes, 16.5e6);
  EXPECT_TRUE(std::isnan(of(profiles, "gate_up, 1/rms, silu").sum.seconds));
}

}  // namespace
}  // namespace gatefold::cli
