#include "cli/roofline.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "checkpoint/input_error.hpp"
#include "cli/bench_data.hpp"

namespace gatefold::cli {
namespace {

double copy_bytes_per_second(Backend& backend, const TimingOptions& timing) {
  const std::size_t bytes = std::max<std::size_t>(4 * backend.cache_bytes(), std::size_t{64} << 20);
  const auto elements = static_cast<std::int64_t>(bytes / 4);
  const DeviceBuffer from = random_normal(backend, GATEFOLD_DTYPE_FP32, elements, 1.0, 1);
  const DeviceBuffer to(backend, bytes);
  const auto samples =
      time_in_rounds(backend, {{"copy", [&](std::int64_t) { backend.copy(to.writable(), from.data(), bytes); }}},
                     timing, [](const std::string&) {});
  return 2.0 * static_cast<double>(bytes) / median(samples.front());
}

double product_flops_per_second(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing) {
  constexpr std::int64_t size = 8192;  // well into the compute-bound
  const Block block{
      .device = backend.device(), .dtype = dtype, .hidden_size = size, .intermediate_size = size, .tokens = size};
  const std::vector<Way> ways{*find_provider(backend.device(), "gatefold").make(GATEFOLD_OP_GEMM, block)};
  const RotatingWeights weights(backend, block, false, 1);
  const BenchData data(backend, GATEFOLD_OP_GEMM, block, ways, &weights, 1);
  const auto samples =
      time_in_rounds(backend, {{"gemm", [&](std::int64_t call) { ways.front().enqueue(data.of_call(call), backend); }}},
                     timing, [](const std::string&) {});
  return ways.front().cost.flops / median(samples.front());
}

// Of one unit of what a call does so much of, in every round.
Samples seconds_of_one(Samples samples, double amount) {
  for (double& seconds : samples) seconds /= amount;
  return samples;
}

}  // namespace

Roofline::Roofline(Backend& backend, gatefold_dtype dtype, const TimingOptions& timing)
    : backend_(backend), dtype_(dtype), timing_(timing) {}

std::string Roofline::unit_of(const Way& way) const {
  std::string found;
  for (const StagePtr& stage : way.stages) {
    const std::string unit = stage->instruction_set();
    if (unit.empty() || unit == found) continue;
    if (!found.empty()) {
      checkpoint::throw_input_error("--roofline: ", name_of(way.op), " of ", way.provider, " runs on ", found,
                                    " and on ", unit,
                                    ", which have one peak each: give --impl or GATEFOLD_IMPL one of them");
    }
    found = unit;
  }
  return found;
}

void Roofline::expect(const Way& way) {
  if (!by_unit()) return;
  const std::string unit = unit_of(way);
  if (unit.empty()) return;
  if (peaks::find_product_loop(unit) == nullptr) {
    checkpoint::throw_input_error("--roofline: ", name_of(way.op), " of ", way.provider, " runs on \"", unit,
                                  "\", and peaks are measured of ", peaks::known_instruction_sets());
  }
  units_.insert(unit);
}

void Roofline::measure() {
  if (by_unit()) {
    if (readings_.empty()) prepare();
    return;
  }
  bytes_per_second_ = std::max(bytes_per_second_, copy_bytes_per_second(backend_, timing_));
  flops_per_second_ = std::max(flops_per_second_, product_flops_per_second(backend_, dtype_, timing_));
}

// What is read lies in memory that is allocated as the weights are: in the same pages.
void Roofline::prepare() {
  const std::size_t bytes =
      std::min(std::max(4 * backend_.cache_bytes(), std::size_t{256} << 20), backend_.memory_to_use());
  read_ = DeviceBuffer(backend_, bytes);
  peaks::write_parts(read_.writable(), bytes);
  gatefold_device_info cpu{};
  throw_on_error(gatefold_device_query(GATEFOLD_DEVICE_CPU, 0, &cpu));
  for (const peaks::ReadLoop& loop : peaks::read_loops(cpu.features)) {
    readings_.push_back(peaks::reading(loop, read_.data(), bytes));
  }
  for (const std::string& unit : units_) {
    const peaks::ProductLoop& loop = *peaks::find_product_loop(unit);
    const bool bf16 = loop.operands == peaks::Operands::bf16;
    const gatefold_dtype dtype = bf16 ? GATEFOLD_DTYPE_BF16 : GATEFOLD_DTYPE_FP32;
    const auto elements = static_cast<std::int64_t>(loop.operand_bytes) / size_of(dtype);
    DeviceBuffer operands = random_normal(backend_, dtype, elements, 1.0, 1);
    peaks::Work work = peaks::products(loop, operands.data());
    products_.emplace(unit, Unit{std::move(operands), std::move(work)});
  }
}

std::vector<Participant> Roofline::participants() const {
  std::vector<Participant> all;
  for (const peaks::Work& reading : readings_) {
    all.push_back({"reading memory", [&](std::int64_t) { reading.run(); }});
  }
  for (const auto& [unit, products] : products_) {
    all.push_back({"products by " + unit, [&](std::int64_t) { products.work.run(); }});
  }
  return all;
}

void Roofline::describe(Json& row, const Way& way, const Samples& samples, std::span<const Samples> peaks) {
  row["bytes"] = way.cost.bytes;
  row["flops"] = way.cost.flops;
  row["intensity"] = way.cost.bytes == 0.0 ? Json(nullptr) : Json(way.cost.flops / way.cost.bytes);
  if (!by_unit()) return;
  Samples byte = seconds_of_one(peaks[0], readings_[0].amount);
  for (std::size_t i = 1; i < readings_.size(); ++i) {
    const Samples other = seconds_of_one(peaks[i], readings_[i].amount);
    std::ranges::transform(byte, other, byte.begin(), [](double a, double b) { return std::min(a, b); });
  }
  bytes_per_second_ = std::max(bytes_per_second_, 1.0 / *std::ranges::min_element(byte));
  std::map<std::string, Samples> flop;
  for (auto samples_of_unit = peaks.begin() + static_cast<std::ptrdiff_t>(readings_.size());
       const auto& [unit, products] : products_) {
    const Samples& one = flop[unit] = seconds_of_one(*samples_of_unit++, products.work.amount);
    unit_flops_[unit] = std::max(unit_flops_[unit], 1.0 / *std::ranges::min_element(one));
  }
  const std::string unit = unit_of(way);
  row["unit"] = unit.empty() ? Json(nullptr) : Json(unit);
  hold_against(row, samples, byte, unit.empty() ? nullptr : &flop.at(unit));
}

// Seconds of one byte and of one operation, of the same rounds as the row's. Fractions are the medians of the rounds'.
void Roofline::hold_against(Json& row, const Samples& samples, const Samples& byte, const Samples* flop) const {
  const auto bytes = row["bytes"].get<double>();
  const auto flops = row["flops"].get<double>();
  const double of_reading = bytes * speed_ratio(byte, samples);
  const double of_peak = flop == nullptr ? 0.0 : flops * speed_ratio(*flop, samples);
  const bool known = flops == 0.0 || flop != nullptr;  // what somebody else's library runs on is not
  const bool memory_bound = of_reading >= of_peak;
  row["read_gbps"] = 1e-9 / median(byte);
  row["peak_tflops"] = flop == nullptr ? Json(nullptr) : Json(1e-12 / median(*flop));
  row["fraction_of_read_bandwidth"] = of_reading;
  row["fraction_of_peak"] = flops == 0.0 || flop == nullptr ? Json(nullptr) : Json(of_peak);
  row["bound"] = !known ? Json(nullptr) : Json(memory_bound ? "memory" : "compute");
  row["bound_time_us"] =
      !known ? Json(nullptr) : Json(1e6 * (memory_bound ? bytes * median(byte) : flops * median(*flop)));
  row["fraction_of_bound"] = known ? Json(std::max(of_reading, of_peak)) : Json(nullptr);
}

void Roofline::compare(Json& row) const {
  if (by_unit()) return;
  const double seconds = row["time_us"].get<double>() * 1e-6;
  const double memory_seconds = row["bytes"].get<double>() / bytes_per_second_;
  const double compute_seconds = row["flops"].get<double>() / flops_per_second_;
  const double bound = std::max(memory_seconds, compute_seconds);
  row["bound"] = memory_seconds >= compute_seconds ? "memory" : "compute";
  row["bound_time_us"] = bound * 1e6;
  row["fraction_of_bound"] = bound / seconds;
}

void Roofline::add_to(Json& context) const {
  if (!by_unit()) {
    context["peak_gbps"] = bytes_per_second_ * 1e-9;
    context["peak_tflops"] = flops_per_second_ * 1e-12;
    return;
  }
  context["read_gbps"] = bytes_per_second_ * 1e-9;
  context["unit_tflops"] = Json::object();
  for (const auto& [unit, flops] : unit_flops_) context["unit_tflops"][unit] = flops * 1e-12;
}

std::vector<Column> Roofline::columns() const {
  std::vector<Column> columns{{"bytes", "bytes", bytes_text},
                              {"intensity", "flop/byte", number_text},
                              {"bound", "bound", plain_text},
                              {"bound_time_us", "time at bound", time_text},
                              {"fraction_of_bound", "reached", percent_text}};
  if (by_unit()) {
    columns.push_back({"unit", "unit", plain_text});
    columns.push_back({"read_gbps", "reading GB/s", number_text});
    columns.push_back({"fraction_of_read_bandwidth", "of read bandwidth", percent_text});
    columns.push_back({"peak_tflops", "peak TFLOP/s", number_text});
    columns.push_back({"fraction_of_peak", "of peak", percent_text});
  }
  return columns;
}

std::string Roofline::note() const {
  if (!by_unit()) {
    return fmt::format("peaks measured here: copy {:.1f} GB/s, product {:.3f} TFLOP/s", bytes_per_second_ * 1e-9,
                       flops_per_second_ * 1e-12);
  }
  std::string text = fmt::format("best measured here: read {:.1f} GB/s", bytes_per_second_ * 1e-9);
  for (const auto& [unit, flops] : unit_flops_) text += fmt::format(", {} {:.3f} TFLOP/s", unit, flops * 1e-12);
  return text;
}

}  // namespace gatefold::cli
