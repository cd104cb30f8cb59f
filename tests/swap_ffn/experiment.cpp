#include "swap_ffn/experiment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "support/names.hpp"

namespace gatefold::test {
namespace {

constexpr std::size_t canary = 256;
constexpr std::byte poison_byte{0xff};

std::int64_t elements_of(const gatefold_swap_ffn_tensor& tensor) {
  std::int64_t count = 1;
  for (int i = 0; i < tensor.rank; ++i) count *= tensor.shape[i];
  return count;
}

// Such that every stage of the step comes out near 1, and about half of the cores swap.
struct Drawn {
  double mean;
  double deviation;
};
Drawn drawn(const std::string& name, const SwapFfnDesc& d) {
  const auto over_root = [](std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); };
  const std::map<std::string, Drawn> all{{"core_embed", {0.0, 1.0}},
                                         {"scale_w", {0.0, 0.3 * over_root(d.core_embed_size)}},
                                         {"scale_b", {0.1, 0.1}},
                                         {"shift_w", {0.0, 0.5 * over_root(d.core_embed_size)}},
                                         {"shift_b", {0.0, 0.3}},
                                         {"alpha_w", {0.0, over_root(d.core_embed_size)}},
                                         {"alpha_b", {0.0, 0.5}},
                                         {"router_norm", {1.0, 0.2}},
                                         {"router_w", {0.0, over_root(d.hidden_size)}},
                                         {"router_swap_w", {0.0, over_root(d.router_width)}},
                                         {"router_swap_b", {0.0, 0.1}},
                                         {"bank_w", {0.0, over_root(d.router_width)}},
                                         {"bank_b", {0.0, 0.1}},
                                         {"ffn_norm", {1.0, 0.2}},
                                         {"gate_w", {0.0, over_root(d.hidden_size)}},
                                         {"up_w", {0.0, 1.5 * over_root(d.hidden_size)}},
                                         {"down_w", {0.0, over_root(d.intermediate_size)}},
                                         {"basis", {0.0, over_root(d.hidden_size)}},
                                         {"decoder", {0.0, over_root(d.collapse_width)}}};
  return all.at(name);
}

}  // namespace

Guarded::Guarded(std::size_t bytes) : size_(bytes), memory_(bytes + 2 * canary + 256, poison_byte) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + canary;
  first_ = canary + (256 - address % 256) % 256;
}

void Guarded::assign(const std::vector<std::byte>& bytes) { std::ranges::copy(bytes, data()); }
void Guarded::poison() { std::fill_n(data(), size_, poison_byte); }

bool Guarded::surroundings_intact() const {
  const auto intact = [](std::byte b) { return b == poison_byte; };
  return std::all_of(memory_.data(), data(), intact) &&
         std::all_of(data() + size_, memory_.data() + memory_.size(), intact);
}

std::byte* Guarded::there() {
  if (device_memory().device() == GATEFOLD_DEVICE_CPU) return data();
  if (there_ == nullptr) there_ = std::make_shared<Allocation>(device_memory(), size_ + 2 * canary);
  return there_->get() + canary;
}

void Guarded::upload() {
  std::byte* const to = there();
  if (to != data()) device_memory().upload(to - canary, data() - canary, size_ + 2 * canary);
}

void Guarded::download() {
  const std::byte* const from = there();
  if (from != data()) device_memory().download(data() - canary, from - canary, size_ + 2 * canary);
}

SwapFfnDesc small_desc(gatefold_dtype dtype) {
  const gatefold_device device = device_memory().device();
  return {.dtype = dtype,
          .device = device,
          .hidden_size = 72,
          .intermediate_size = 100,
          .cores = 13,
          .core_embed_size = 5,
          .router_width = 9,
          .collapse_heads = 3,
          .collapse_width = 11,
          .events = 3,
          .k_ffn = 2,
          .implementation = device == GATEFOLD_DEVICE_CPU ? nullptr : "fused"};
}

SwapFfnExperiment::SwapFfnExperiment(const SwapFfnDesc& desc, std::int64_t batch, Random& random)
    : plan(desc), desc_(desc), batch_(batch) {
  const gatefold_swap_ffn_desc c_desc = desc.c_desc();
  gatefold_swap_ffn_tensor t{};
  for (int i = 0; gatefold_swap_ffn_weight(&c_desc, i, &t) != 0; ++i) {
    weights_.push_back({t, tensor(elements_of(t))});
    const Drawn from = drawn(t.name, desc);
    draw(weights_.back().values, elements_of(t), from.mean, from.deviation, random);
  }
  const std::int64_t D = desc.hidden_size;
  x = tensor(batch * D);
  delta = tensor(batch * D);
  ram = tensor(rows() * 4 * D);
  states = tensor(slices() * rows() * D);
  redraw_x(random);
  draw(ram, rows() * 4 * D, 0.0, 1.0, random);
  stream_map = Guarded(static_cast<std::size_t>(rows()));
  std::fill_n(stream_map.data(), rows(), std::byte{GATEFOLD_SWAP_FFN_INITIAL_MAP});
  decisions = Guarded(static_cast<std::size_t>(desc.events * rows()));
  prepared = Guarded(plan.prepared_size());
  workspace = Guarded(plan.workspace_size(batch));
  reload();
}

Guarded SwapFfnExperiment::tensor(std::int64_t elements) const {
  return Guarded(static_cast<std::size_t>(elements) * element_size(desc_.dtype));
}

void SwapFfnExperiment::draw(Guarded& tensor, std::int64_t count, double mean, double deviation, Random& random) {
  std::normal_distribution<double> normal(mean, deviation);
  for (std::int64_t i = 0; i < count; ++i) set_element(tensor, i, round_to(desc_.dtype, normal(random)));
}

void SwapFfnExperiment::redraw_x(Random& random) { draw(x, batch_ * desc_.hidden_size, 0.0, 1.0, random); }

double SwapFfnExperiment::element(const Guarded& tensor, std::int64_t i) const {
  return decode(desc_.dtype, tensor.data() + i * static_cast<std::int64_t>(element_size(desc_.dtype)));
}
void SwapFfnExperiment::set_element(Guarded& tensor, std::int64_t i, double value) {
  encode(desc_.dtype, value, tensor.data() + i * static_cast<std::int64_t>(element_size(desc_.dtype)));
}

gatefold_swap_ffn_weights SwapFfnExperiment::weights_at(const std::vector<const void*>& pointers) const {
  gatefold_swap_ffn_weights w{};
  w.struct_size = sizeof w;
  EXPECT_EQ(pointers.size(), std::size_t{GATEFOLD_SWAP_FFN_WEIGHTS});
  // The struct's order is the tensors'.
  std::memcpy(&w.core_embed, pointers.data(), GATEFOLD_SWAP_FFN_WEIGHTS * sizeof(void*));
  return w;
}

gatefold_swap_ffn_weights SwapFfnExperiment::weights() const {
  std::vector<const void*> pointers;
  for (const Named& named : weights_) pointers.push_back(named.values.data());
  return weights_at(pointers);
}

SwapFfnExperiment::Named& SwapFfnExperiment::named(const std::string& name) {
  return *std::ranges::find_if(weights_, [&](const Named& n) { return n.tensor.name == name; });
}
double SwapFfnExperiment::get(const std::string& name, std::int64_t i) const {
  return element(const_cast<SwapFfnExperiment*>(this)->named(name).values, i);
}
void SwapFfnExperiment::set(const std::string& name, std::int64_t i, double value) {
  set_element(named(name).values, i, value);
}

void SwapFfnExperiment::reload() {
  prepared.poison();
  prepared.upload();
  std::vector<const void*> pointers;
  for (Named& named : weights_) {
    named.values.upload();
    pointers.push_back(named.values.there());
  }
  plan.prepare(weights_at(pointers), {prepared.there(), prepared.size()});
  prepared.download();
  EXPECT_TRUE(prepared.surroundings_intact());
}

SwapFfnArgs SwapFfnExperiment::args(bool keep) {
  return {.batch = batch_,
          .prepared = {prepared.there(), prepared.size()},
          .x = x.there(),
          .ram = ram.there(),
          .stream_map = reinterpret_cast<std::uint8_t*>(stream_map.there()),
          .delta = delta.there(),
          .workspace = {workspace.there(), workspace.size()},
          .states = keep ? states.there() : nullptr,
          .decisions = keep ? reinterpret_cast<std::uint8_t*>(decisions.there()) : nullptr};
}

void SwapFfnExperiment::step(bool keep) {
  ram_before = ram;
  stream_map_before = stream_map;
  for (Guarded* out : {&delta, &states, &decisions, &workspace}) out->poison();
  const std::vector<std::byte> x_before = x.bytes();
  const std::vector<std::byte> prepared_before = prepared.bytes();
  for (Guarded* buffer : {&delta, &states, &decisions, &workspace}) buffer->upload();
  run(args(keep));
  for (Guarded* buffer : {&x, &prepared, &states, &decisions, &workspace}) buffer->download();
  EXPECT_EQ(x.bytes(), x_before);
  EXPECT_EQ(prepared.bytes(), prepared_before);
  for (const Guarded* buffer : {&x, &ram, &stream_map, &delta, &states, &decisions, &prepared, &workspace}) {
    EXPECT_TRUE(buffer->surroundings_intact());
  }
}

void SwapFfnExperiment::run(const SwapFfnArgs& args) {
  // delta with them, or its canaries there would be whatever the memory held.
  for (Guarded* buffer : {&x, &ram, &stream_map, &delta}) buffer->upload();
  plan.run(args);
  for (Guarded* buffer : {&ram, &stream_map, &delta}) buffer->download();
}

gatefold_swap_ffn_report SwapFfnExperiment::check(gatefold_data data) const {
  const gatefold_swap_ffn_desc c_desc = desc_.c_desc();
  const gatefold_swap_ffn_weights w = weights();
  gatefold_swap_ffn_check_args args{};
  args.struct_size = sizeof args;
  args.batch = batch_;
  args.x = x.data();
  args.ram_before = ram_before.data();
  args.stream_map_before = reinterpret_cast<const std::uint8_t*>(stream_map_before.data());
  args.ram = ram.data();
  args.stream_map = reinterpret_cast<const std::uint8_t*>(stream_map.data());
  args.delta = delta.data();
  args.states = states.data();
  args.decisions = reinterpret_cast<const std::uint8_t*>(decisions.data());
  gatefold_swap_ffn_report report{};
  throw_on_error(gatefold_swap_ffn_check(&c_desc, &w, &args, data, &report));
  return report;
}

// Of an event's last s, relative L2. Of 16-bit types h is rounded once and so is s, each within what docs/numerics.md
// allows a rounding (1.9e-3 of bf16, 2.4e-4 of fp16), and the two are independent.
//
// In fp32 the sums count. An addition that is rounded to nearest errs by a root mean square of 2^-24 / sqrt(3) of its
// result at most, and after i of n terms that is sqrt(i / n) of the whole sum: n / 2 times 2^-48 / 3 in all, for gate,
// up and down. What is around them, the activation's 16 roundings (docs/numerics.md) and one each of 1/rms, its
// products with both sums, h and s, comes to 21 times 2^-48 / 3. Sums that are cut off, as tensor cores do, are beyond
// it: n cuts towards zero add up as n does, not as its root.
double SwapFfnExperiment::relative_l2_limit() const {
  if (desc_.dtype == GATEFOLD_DTYPE_BF16) return std::sqrt(2.0) * 1.9e-3;
  if (desc_.dtype == GATEFOLD_DTYPE_FP16) return std::sqrt(2.0) * 2.4e-4;
  const double terms = 2.0 * static_cast<double>(desc_.hidden_size) + static_cast<double>(desc_.intermediate_size);
  return 0x1p-24 * std::sqrt((terms / 2.0 + 21.0) / 3.0);
}

// Of a few rows, each with its few large h, the relative L2 says nothing.
gatefold_swap_ffn_report SwapFfnExperiment::expect_right() const {
  const gatefold_swap_ffn_report report = check(GATEFOLD_DATA_ZERO_MEAN);
  EXPECT_EQ(report.decisions, 2 * desc_.events * rows());
  EXPECT_EQ(report.wrong_decisions, 0);
  EXPECT_EQ(report.wrong_moves, 0);
  EXPECT_EQ(report.violations, 0);
  EXPECT_LE(report.max_bound_ratio, 1.0);
  if (desc_.hidden_size >= 64 && rows() >= 26) {
    EXPECT_LE(report.relative_l2, relative_l2_limit());
  }
  return report;
}

}  // namespace gatefold::test
