#include "cli/roofline.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "checkpoint/input_error.hpp"
#include "cli/bench_data.hpp"
#include "peaks/measure.hpp"

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

// In memory that is allocated as the weights are: in the same pages.
double read_bytes_per_second(Backend& backend) {
  const std::size_t bytes =
      std::min(std::max(4 * backend.cache_bytes(), std::size_t{256} << 20), backend.memory_to_use());
  const DeviceBuffer buffer(backend, bytes);
  peaks::write_parts(buffer.writable(), bytes);
  gatefold_device_info cpu{};
  throw_on_error(gatefold_device_query(GATEFOLD_DEVICE_CPU, 0, &cpu));
  return peaks::read_bytes_per_second(peaks::read_loops(cpu.features), buffer.data(), bytes);
}

double unit_flops_per_second(Backend& backend, const std::string& unit) {
  const peaks::ProductLoop& loop = *peaks::find_product_loop(unit);
  const bool bf16 = loop.operands == peaks::Operands::bf16;
  const gatefold_dtype dtype = bf16 ? GATEFOLD_DTYPE_BF16 : GATEFOLD_DTYPE_FP32;
  const auto elements = static_cast<std::int64_t>(loop.operand_bytes) / size_of(dtype);
  const DeviceBuffer operands = random_normal(backend, dtype, elements, 1.0, 1);
  return peaks::flops_per_second(loop, operands.data());
}

Json ratio_or_null(double value, double bound) { return bound > 0.0 ? Json(value / bound) : Json(nullptr); }

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
  const auto keep_best = [](double& best, double measured) { best = std::max(best, measured); };
  if (!by_unit()) {
    keep_best(bytes_per_second_, copy_bytes_per_second(backend_, timing_));
    keep_best(flops_per_second_, product_flops_per_second(backend_, dtype_, timing_));
    return;
  }
  keep_best(bytes_per_second_, read_bytes_per_second(backend_));
  for (const std::string& unit : units_) keep_best(unit_flops_[unit], unit_flops_per_second(backend_, unit));
}

void Roofline::describe(Json& row, const Way& way) const {
  row["bytes"] = way.cost.bytes;
  row["flops"] = way.cost.flops;
  row["intensity"] = way.cost.bytes == 0.0 ? Json(nullptr) : Json(way.cost.flops / way.cost.bytes);
  if (!by_unit()) return;
  const std::string unit = unit_of(way);
  row["unit"] = unit.empty() ? Json(nullptr) : Json(unit);
}

double Roofline::peak_of(const Json& row) const {
  if (!by_unit()) return flops_per_second_;
  return row["unit"].is_null() ? 0.0 : unit_flops_.at(row["unit"].get<std::string>());
}

void Roofline::compare(Json& row) const {
  const double seconds = row["time_us"].get<double>() * 1e-6;
  const auto flops = row["flops"].get<double>();
  const double peak = peak_of(row);
  const double memory_seconds = row["bytes"].get<double>() / bytes_per_second_;
  const double compute_seconds = flops == 0.0 ? 0.0 : flops / peak;
  const bool known = flops == 0.0 || peak > 0.0;  // what somebody else's library runs on is not
  const double bound = std::max(memory_seconds, compute_seconds);
  row["bound"] = !known ? Json(nullptr) : Json(memory_seconds >= compute_seconds ? "memory" : "compute");
  row["bound_time_us"] = known ? Json(bound * 1e6) : Json(nullptr);
  row["fraction_of_bound"] = known ? Json(bound / seconds) : Json(nullptr);
  if (!by_unit()) return;
  row["fraction_of_read_bandwidth"] = memory_seconds / seconds;
  row["fraction_of_peak"] = flops == 0.0 ? Json(nullptr) : ratio_or_null(flops / seconds, peak);
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
    columns.push_back({"fraction_of_read_bandwidth", "of read bandwidth", percent_text});
    columns.push_back({"fraction_of_peak", "of peak", percent_text});
  }
  return columns;
}

std::string Roofline::note() const {
  if (!by_unit()) {
    return fmt::format("peaks measured here: copy {:.1f} GB/s, product {:.3f} TFLOP/s", bytes_per_second_ * 1e-9,
                       flops_per_second_ * 1e-12);
  }
  std::string text = fmt::format("peaks measured here: read {:.1f} GB/s", bytes_per_second_ * 1e-9);
  for (const auto& [unit, flops] : unit_flops_) text += fmt::format(", {} {:.3f} TFLOP/s", unit, flops * 1e-12);
  return text;
}

}  // namespace gatefold::cli
