#include "cli/ncu_profile.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "checkpoint/input_error.hpp"

namespace gatefold::cli {
namespace {

using checkpoint::throw_input_error;
using Fields = std::vector<std::string>;

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

// The fields of a line: quoted, a quote in one written twice.
Fields fields_of(std::string_view line) {
  Fields fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else if (line[i] != '\r') {
      fields.back() += line[i];
    }
  }
  return fields;
}

// A unit as ncu writes it, as a factor: it scales bytes and times to what is short to read.
std::optional<double> factor_of(const std::string& unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 16> units{{{"byte", 1.0},
                                                                              {"Kbyte", 1e3},
                                                                              {"Mbyte", 1e6},
                                                                              {"Gbyte", 1e9},
                                                                              {"Tbyte", 1e12},
                                                                              {"nsecond", 1e-9},
                                                                              {"usecond", 1e-6},
                                                                              {"msecond", 1e-3},
                                                                              {"second", 1.0},
                                                                              {"ns", 1e-9},
                                                                              {"us", 1e-6},
                                                                              {"ms", 1e-3},
                                                                              {"s", 1.0},
                                                                              {"%", 0.01},
                                                                              {"", 1.0},
                                                                              {"B", 1.0}}};
  const auto* const known = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  return known == units.end() ? std::nullopt : std::optional(known->second);
}

// Thousands may be divided by commas.
std::optional<double> number_of(std::string text) {
  std::erase(text, ',');
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The columns that are read.
class Table {
 public:
  Table(std::string file, Fields titles, const Fields& units)
      : file_(std::move(file)),
        titles_(std::move(titles)),
        name_(place("Kernel Name")),
        metrics_{metric("gpu__time_duration.sum", units), metric("dram__bytes_read.sum", units),
                 metric("dram__bytes_write.sum", units),
                 metric("dram__throughput.avg.pct_of_peak_sustained_elapsed", units),
                 metric("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", units)} {
    if (!name_) throw_input_error(file_, ": has no column \"Kernel Name\"");
    if (!metrics_[1].place)
      throw_input_error(file_, ": has no column \"dram__bytes_read.sum\": give it to ncu's --metrics");
  }

  KernelProfile kernel(const Fields& row, std::size_t line) const {
    if (row.size() != titles_.size()) {
      throw_input_error(file_, ":", line, ": ", row.size(), " fields, but ", titles_.size(), " columns");
    }
    const auto value = [&](std::size_t i) {
      const Metric& metric = metrics_[i];
      if (!metric.place || row[*metric.place].empty()) return missing;
      const std::optional<double> number = number_of(row[*metric.place]);
      if (!number) {
        throw_input_error(file_, ":", line, ": ", titles_[*metric.place], ": \"", row[*metric.place],
                          "\" is not a number");
      }
      return *number * metric.factor;
    };
    return {row[*name_], value(0), value(1), value(2), value(3), value(4)};
  }

 private:
  struct Metric {
    std::optional<std::size_t> place;
    double factor;
  };

  std::optional<std::size_t> place(std::string_view title) const {
    const auto found = std::ranges::find(titles_, title);
    return found == titles_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - titles_.begin()));
  }

  Metric metric(std::string_view title, const Fields& units) const {
    const std::optional<std::size_t> at = place(title);
    if (!at) return {at, 1.0};
    const std::string unit = *at < units.size() ? units[*at] : "";
    const std::optional<double> factor = factor_of(unit);
    if (!factor) throw_input_error(file_, ": ", title, ": unit \"", unit, "\" is none of bytes, seconds or %");
    return {at, *factor};
  }

  std::string file_;
  Fields titles_;
  std::optional<std::size_t> name_;
  std::array<Metric, 5> metrics_;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The fused step's pass of a kernel that is no single product; "" for any other.
std::string fused_pass(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 7> passes{
      {{"swap_ffn::start_kernel", "start"},
       {"swap_ffn::route_", "router, decide, swap, rms"},
       {"sm90::chain_kernel", "MLPs of an event"},
       {"swap_ffn::measure_kernel", "rms"},
       {"swap_ffn::pool_kernel", "pool"},
       {"swap_ffn::collapse_kernel", "collapse: basis, silu"},
       {"swap_ffn::delta_kernel", "collapse: decoder"}}};
  const auto* const known = std::ranges::find_if(passes, [&](const auto& p) { return has(name, p.first); });
  return known == passes.end() ? "" : known->second;
}

// ncu leaves out the first of a name's namespaces, here gatefold: "void cuda::sm90::kernel<..>", or all but the last:
// "void sm90::kernel<..>", "swap_ffn::start_kernel".
bool is_ours(const KernelProfile& kernel) {
  static constexpr std::array<std::string_view, 7> namespaces{
      "gatefold::", "cli::", "cuda::", "swap_ffn::", "sm90::", "sm80::", "simt::"};
  std::string_view name = kernel.name;
  if (constexpr std::string_view result = "void "; name.starts_with(result)) name.remove_prefix(result.size());
  return std::ranges::any_of(namespaces, [&](std::string_view first) { return name.starts_with(first); });
}

bool is_range(const KernelProfile& kernel) { return kernel.name == "range"; }

void add_to(std::vector<PassProfile>& profiles, const std::string& pass, const KernelProfile& kernel) {
  auto place = std::ranges::find(profiles, pass, &PassProfile::pass);
  if (place == profiles.end()) place = profiles.insert(profiles.end(), {pass, 0, {}});
  ++place->kernels;
  place->sum.add(kernel);
}

// Of the launches of gate_up and down that follow one another, those of gate_up.
std::size_t launches_of_gate_up(const std::vector<KernelProfile>& kernels, std::size_t begin, std::size_t end,
                                const std::string& file) {
  const auto changes = [&](std::size_t i) { return kernels[i].name != kernels[i - 1].name; };
  std::vector<std::size_t> places;
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (changes(i)) places.push_back(i - begin);
  }
  if (places.size() == 1) return places.front();
  if (places.empty() && (end - begin) % 2 == 0) return (end - begin) / 2;
  throw_input_error(file, ": ", end - begin, " kernels between \"", kernels[begin - 1].name, "\" and \"",
                    kernels[end].name, "\" are not one gate_up and one down");
}

}  // namespace

void KernelProfile::add(const KernelProfile& other) {
  const double both = seconds + other.seconds;
  const auto weighted = [&](double a, double b) {
    return both > 0.0 ? (a * seconds + b * other.seconds) / both : missing;
  };
  memory_share = weighted(memory_share, other.memory_share);
  tensor_core_share = weighted(tensor_core_share, other.tensor_core_share);
  seconds = both;
  read_bytes += other.read_bytes;
  written_bytes += other.written_bytes;
}

std::vector<KernelProfile> read_ncu_csv(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw_input_error(file, ": cannot be opened");
  std::optional<Table> table;
  std::vector<KernelProfile> kernels;
  std::size_t number = 0;
  Fields titles;
  for (std::string line; std::getline(in, line);) {
    ++number;
    // Other lines are ncu's own messages, "==PROF== ...", or the program's output.
    if (line.empty() || line.front() != '"') continue;
    Fields fields = fields_of(line);
    if (fields.front() == "ID") {
      titles = std::move(fields);
      table.reset();
    } else if (titles.empty()) {
      continue;
    } else if (!table) {
      table.emplace(file, titles, fields);  // the line of the units
    } else {
      kernels.push_back(table->kernel(fields, number));
    }
  }
  if (titles.empty())
    throw_input_error(file, ": has no line that begins with \"ID\": not what ncu --csv --page raw writes");
  if (kernels.empty()) throw_input_error(file, ": no kernels");
  if (std::ranges::none_of(kernels, is_range) && std::ranges::none_of(kernels, is_ours)) {
    throw_input_error(file, ": of ", kernels.size(), " kernels none is gatefold's, the first is \"",
                      kernels.front().name, "\": export with --print-kernel-base demangled");
  }
  return kernels;
}

std::optional<StepProfiles> profile_of_steps(const std::vector<KernelProfile>& kernels, const std::string& file) {
  const auto ranges = std::ranges::count_if(kernels, is_range);
  if (ranges == 0) return std::nullopt;
  if (ranges != 2 || kernels.size() != 2) {
    throw_input_error(file, ": ", ranges, " ranges and ", kernels.size() - static_cast<std::size_t>(ranges),
                      " kernels, but 2 ranges are a trace's, the fused step and the unfused one");
  }
  return StepProfiles{kernels[0], kernels[1]};
}

std::vector<PassProfile> profile_of_fused(const std::vector<KernelProfile>& kernels, const std::string& file) {
  const auto is = [&](std::size_t i, const char* pass) { return fused_pass(kernels[i].name) == pass; };
  std::size_t end = kernels.size();
  while (end > 0 && !is(end - 1, "collapse: decoder")) --end;
  if (end == 0) return {};
  std::size_t begin = end - 1;
  while (begin > 0 && !is(begin, "start")) --begin;
  if (!is(begin, "start"))
    throw_input_error(file, ": a step's last kernel, \"", kernels[end - 1].name, "\", but not its first");

  std::vector<PassProfile> profiles;
  for (std::size_t i = begin; i < end;) {
    const std::string pass = fused_pass(kernels[i].name);
    if (!pass.empty()) {
      add_to(profiles, pass, kernels[i++]);
      continue;
    }
    std::size_t last = i;
    while (fused_pass(kernels[last].name).empty()) ++last;
    const std::size_t down = i + launches_of_gate_up(kernels, i, last, file);
    for (; i < last; ++i) add_to(profiles, i < down ? "gate_up, 1/rms, silu" : "down: gemm", kernels[i]);
  }
  return profiles;
}

std::vector<PassProfile> profile_of_unfused(const std::vector<KernelProfile>& kernels,
                                            const std::vector<PassLaunch>& launches, const std::string& file) {
  if (!fused_pass(kernels.back().name).empty()) return {};  // the file ends with a fused step
  // Backwards, since what came before the step may be anything.
  std::vector<std::pair<std::string, std::size_t>> taken;  // pass, kernel
  std::size_t end = kernels.size();
  for (std::size_t last = launches.size(); last > 0;) {
    std::size_t first = last;
    while (first > 0 && launches[first - 1].product) --first;
    const std::size_t products = last - first;
    if (products == 0) {
      const std::string& pass = launches[--last].pass;
      if (end == 0 || !is_ours(kernels[end - 1])) {
        throw_input_error(file, ": pass \"", pass, "\" of the unfused step is ",
                          end == 0 ? "not there" : "\"" + kernels[end - 1].name + "\", another library's");
      }
      taken.emplace_back(pass, --end);
      continue;
    }
    std::size_t begin = end;
    while (begin > 0 && !is_ours(kernels[begin - 1])) --begin;
    if (begin == end || (end - begin) % products != 0) {
      throw_input_error(file, ": ", products, " products from \"", launches[first].pass, "\" on, but ", end - begin,
                        " kernels of another library");
    }
    const std::size_t each = (end - begin) / products;
    for (std::size_t i = end; i > begin; --i) taken.emplace_back(launches[first + (i - 1 - begin) / each].pass, i - 1);
    end = begin;
    last = first;
  }
  std::vector<PassProfile> profiles;
  for (std::size_t i = taken.size(); i > 0; --i) add_to(profiles, taken[i - 1].first, kernels[taken[i - 1].second]);
  return profiles;
}

}  // namespace gatefold::cli
