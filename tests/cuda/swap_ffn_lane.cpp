#include "swap_ffn_lane.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace gatefold::test {
namespace {

// The first bytes of an image, as many as `to` has.
void assign_first(Guarded& to, const Guarded& from) {
  to.assign({from.data(), from.data() + static_cast<std::ptrdiff_t>(to.size())});
}

std::size_t size_of(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

SwapFfnLane::Bits first_bits(SwapFfnLane& lane) {
  lane.begin();
  lane.enqueue();
  return lane.bits();
}

// Where two differ, in pieces of so many bytes, one a sequence; left_out: a sequence that may differ.
void expect_same(const char* name, const std::vector<std::byte>& one, const std::vector<std::byte>& other,
                 std::size_t piece, std::size_t period, std::int64_t left_out) {
  ASSERT_EQ(one.size(), other.size());
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] == other[i] || static_cast<std::int64_t>(i / piece % period) == left_out) continue;
    if (differing++ == 0) first = i;
  }
  EXPECT_EQ(differing, 0U) << name << ": of " << one.size() << " bytes so many differ, the first is number " << first
                           << ", in sequence " << first / piece % period;
}

}  // namespace

SwapFfnDesc real_desc(gatefold_dtype dtype) {
  SwapFfnDesc desc = small_desc(dtype);
  desc.hidden_size = 1024;
  desc.intermediate_size = 4096;
  desc.cores = 512;
  desc.core_embed_size = 32;
  desc.router_width = 64;
  desc.collapse_heads = 8;
  desc.collapse_width = 224;
  desc.events = 1;
  return desc;
}

std::string why_no_chains() {
  int major = 0;
  int minor = 0;
  require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  require(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "cudaDeviceGetAttribute");
  if (major == 9 && minor == 0) return "";
  return "MLPs in one launch are for compute capability 9.0, this device has " + std::to_string(major) + "." +
         std::to_string(minor);
}

bool is_chained(const SwapFfn& plan, std::int64_t batch) {
  const std::vector<gatefold_swap_ffn_pass_info> passes = plan.passes(batch);
  return std::ranges::any_of(passes, [](const gatefold_swap_ffn_pass_info& pass) {
    return std::string_view(pass.name) == "MLPs of an event" && pass.launches > 0;
  });
}

void plan_anew(SwapFfnExperiment& experiment, const SwapFfnDesc& desc) {
  experiment.plan = SwapFfn(desc);
  ASSERT_EQ(experiment.plan.prepared_size(), experiment.prepared.size());
  experiment.reload();
}

void wait_for_end(const Stream& stream) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream.get());
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) require(state, "a step");
    if (std::chrono::steady_clock::now() > latest) {
      const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
      std::printf("%s.%s: a step has not ended after a minute, so that the program does\n", test->test_suite_name(),
                  test->name());
      std::fflush(stdout);
      std::_Exit(3);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

SwapFfnLane::SwapFfnLane(SwapFfnExperiment& experiment, const SwapFfnDesc& desc, std::int64_t batch, bool keep,
                         int steps)
    : experiment_(experiment), desc_(desc), batch_(batch), keep_(keep) {
  ram = Guarded(size_of(rows() * 4 * row_bytes()));
  map = Guarded(size_of(rows()));
  for (int step = 0; step < steps; ++step) deltas_.emplace_back(size_of(batch * row_bytes()));
  states_ = Guarded(keep ? size_of((1 + desc.events * desc.k_ffn) * rows() * row_bytes()) : 0);
  decisions_ = Guarded(keep ? size_of(desc.events * rows()) : 0);
  workspace_ = Guarded(experiment.plan.workspace_size(batch));
}

std::int64_t SwapFfnLane::row_bytes() const {
  return desc_.hidden_size * static_cast<std::int64_t>(element_size(desc_.dtype));
}

void SwapFfnLane::begin() {
  step_ = deltas_.size() - 1;
  assign_first(ram, experiment_.ram);
  assign_first(map, experiment_.stream_map);
  for (Guarded& delta : deltas_) {
    delta.poison();
    delta.upload();
  }
  for (Guarded* buffer : {&states_, &decisions_, &workspace_}) buffer->poison();
  for (Guarded* buffer : {&experiment_.x, &ram, &map, &states_, &decisions_, &workspace_}) buffer->upload();
}

SwapFfnArgs SwapFfnLane::args() {
  return {.batch = batch_,
          .prepared = {experiment_.prepared.there(), experiment_.prepared.size()},
          .x = experiment_.x.there(),
          .ram = ram.there(),
          .stream_map = reinterpret_cast<std::uint8_t*>(map.there()),
          .delta = delta().there(),
          .workspace = {workspace_.there(), workspace_.size()},
          .stream = stream.get(),
          .states = keep_ ? states_.there() : nullptr,
          .decisions = keep_ ? reinterpret_cast<std::uint8_t*>(decisions_.there()) : nullptr};
}

void SwapFfnLane::enqueue() {
  step_ = (step_ + 1) % deltas_.size();
  experiment_.plan.run(args());
}

void SwapFfnLane::step() {
  ram_before_ = ram;
  map_before_ = map;
  for (Guarded* buffer : {&states_, &decisions_, &workspace_}) {
    buffer->poison();
    buffer->upload();
  }
  enqueue();
  wait_for_end(stream);
  for (Guarded* buffer : {&ram, &map, &delta(), &states_, &decisions_}) buffer->download();
}

SwapFfnLane::Bits SwapFfnLane::bits() {
  wait_for_end(stream);
  Bits result;
  for (Guarded& delta : deltas_) {
    delta.download();
    const std::vector<std::byte> bytes = delta.bytes();
    result.delta.insert(result.delta.end(), bytes.begin(), bytes.end());
    EXPECT_TRUE(delta.surroundings_intact());
  }
  for (Guarded* buffer : {&ram, &map, &states_, &decisions_, &workspace_}) {
    buffer->download();
    EXPECT_TRUE(buffer->surroundings_intact());
  }
  result.ram = ram.bytes();
  result.map = map.bytes();
  return result;
}

void SwapFfnLane::expect_right(bool whole) const {
  const gatefold_swap_ffn_desc c_desc = desc_.c_desc();
  const gatefold_swap_ffn_weights weights = experiment_.weights();
  gatefold_swap_ffn_check_args args{};
  args.struct_size = sizeof args;
  args.batch = batch_;
  args.x = experiment_.x.data();
  args.ram_before = ram_before_.data();
  args.stream_map_before = reinterpret_cast<const std::uint8_t*>(map_before_.data());
  args.ram = ram.data();
  args.stream_map = reinterpret_cast<const std::uint8_t*>(map.data());
  args.delta = deltas_[step_].data();
  args.states = states_.data();
  args.decisions = reinterpret_cast<const std::uint8_t*>(decisions_.data());
  gatefold_swap_ffn_report report{};
  throw_on_error(gatefold_swap_ffn_check(&c_desc, &weights, &args, GATEFOLD_DATA_ZERO_MEAN, &report));
  EXPECT_EQ(report.decisions, 2 * desc_.events * rows());
  EXPECT_EQ(report.wrong_decisions, 0);
  EXPECT_EQ(report.wrong_moves, 0);
  EXPECT_EQ(report.violations, 0);
  EXPECT_LE(report.max_bound_ratio, 1.0);
  if (whole && desc_.hidden_size >= 64 && rows() >= 26) {
    EXPECT_LE(report.relative_l2, experiment_.relative_l2_limit());
  }
}

double SwapFfnLane::state(std::int64_t slice, std::int64_t row, std::int64_t column) const {
  return experiment_.element(states_, (slice * rows() + row) * desc_.hidden_size + column);
}

void expect_same_bits(const SwapFfnLane::Bits& one, const SwapFfnLane::Bits& other) {
  expect_same_bits_but_for(-1, static_cast<std::int64_t>(one.map.size()), one, other);
}

void expect_same_bits_but_for(std::int64_t sequence, std::int64_t batch, const SwapFfnLane::Bits& one,
                              const SwapFfnLane::Bits& other) {
  const auto count = static_cast<std::size_t>(batch);
  const std::size_t row = one.ram.size() / 4 / count;  // bytes
  expect_same("delta", one.delta, other.delta, row, count, sequence);
  expect_same("ram", one.ram, other.ram, 4 * row, count, sequence);
  expect_same("stream_map", one.map, other.map, 1, count, sequence);
}

SwapFfnRepeats::SwapFfnRepeats(SwapFfnExperiment& experiment, const SwapFfnDesc& desc, std::int64_t batch)
    : lane_(experiment, desc, batch, false),
      first_(first_bits(lane_)),
      ram_before_(device_memory(), first_.ram.size()),
      map_before_(device_memory(), first_.map.size()),
      of_delta_(first_.delta),
      of_ram_(first_.ram),
      of_map_(first_.map) {
  device_memory().upload(ram_before_.get(), experiment.ram.data(), first_.ram.size());
  device_memory().upload(map_before_.get(), experiment.stream_map.data(), first_.map.size());
  lane_.begin();
}

void SwapFfnRepeats::enqueue() {
  cudaStream_t on = lane_.stream.get();
  const auto copy = [on](Guarded& to, const Allocation& from) {
    require(cudaMemcpyAsync(to.there(), from.get(), to.size(), cudaMemcpyDeviceToDevice, on), "cudaMemcpyAsync");
  };
  copy(lane_.ram, ram_before_);
  copy(lane_.map, map_before_);
  lane_.enqueue();
  of_delta_.count_and_poison(lane_.delta().there(), on);
  of_ram_.count_and_poison(lane_.ram.there(), on);
  of_map_.count_and_poison(lane_.map.there(), on);
}

std::uint64_t SwapFfnRepeats::differing_words() {
  lane_.bits();  // waits
  return of_delta_.words() + of_ram_.words() + of_map_.words();
}

}  // namespace gatefold::test
