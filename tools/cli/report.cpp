#include "cli/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/input_error.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"

namespace gatefold::cli {
namespace {

// Characters that a terminal shows, not bytes: titles are UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + text : text + space;
}

// JSON has no text for infinity, and null would say that nothing is known: what reads numbers reads these as such.
Json with_infinities_named(const Json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return fmt::format("{}", value.get<double>());
  if (!value.is_structured()) return value;
  Json named = value;
  for (Json& part : named) part = with_infinities_named(part);
  return named;
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

Json at_or_null(const Json& row, const std::string& key) { return row.contains(key) ? row.at(key) : Json(nullptr); }

std::string scaled(double value, const char* const* units, double step, int last) {
  int unit = 0;
  while (unit < last && std::abs(value) >= step) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, std::abs(value) < 10 ? 2 : std::abs(value) < 100 ? 1 : 0, units[unit]);
}

}  // namespace

std::string plain_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string time_text(const Json& microseconds) {
  static constexpr const char* units[] = {"us", "ms", "s"};
  return microseconds.is_null() ? "-" : scaled(microseconds.get<double>(), units, 1000.0, 2);
}

std::string bytes_text(const Json& bytes) {
  static constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  if (bytes.is_null()) return "-";
  if (bytes.get<double>() < 1000.0) return fmt::format("{} B", bytes.get<std::int64_t>());
  return scaled(bytes.get<double>(), units, 1000.0, 4);
}

std::string ratio_text(const Json& ratio) { return ratio.is_null() ? "-" : fmt::format("{:.3f}", ratio.get<double>()); }
std::string error_text(const Json& error) { return error.is_null() ? "-" : fmt::format("{:.2e}", error.get<double>()); }
std::string percent_text(const Json& share) {
  return share.is_null() ? "-" : fmt::format("{:.1f} %", 100.0 * share.get<double>());
}

std::string number_text(const Json& number) {
  if (number.is_null()) return "-";
  const auto value = number.get<double>();
  return fmt::format("{:.{}f}", value, std::abs(value) < 1 ? 3 : std::abs(value) < 100 ? 2 : 1);
}

std::string to_markdown(const Report& report) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (const Column& column : report.columns) {
    std::vector<std::string> texts{column.title};
    bool numeric = true;
    for (const Json& row : report.rows) {
      const Json value = at_or_null(row, column.key);
      numeric = numeric && (value.is_number() || value.is_null());
      texts.push_back(column.text(value));
    }
    std::size_t width = 3;
    for (const std::string& text : texts) width = std::max(width, width_of(text));
    widths.push_back(width);
    right.push_back(numeric);
    cells.push_back(std::move(texts));
  }

  std::string out = report.title.empty() ? "" : report.title + "\n\n";
  for (std::size_t line = 0; line <= report.rows.size(); ++line) {
    for (std::size_t c = 0; c < cells.size(); ++c) out += "| " + padded(cells[c][line], widths[c], right[c]) + " ";
    out += "|\n";
    if (line != 0) continue;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      out += "|" + std::string(widths[c] + 1, '-') + (right[c] ? ":" : "-");
    }
    out += "|\n";
  }
  if (!report.notes.empty()) out += '\n';
  for (const std::string& note : report.notes) out += note + "\n";
  return out;
}

// Rows of different ops differ in their keys: the header has all of them.
std::string to_csv(const Report& report) {
  std::vector<std::string> keys;
  for (const Json& row : report.rows) {
    for (const auto& item : row.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) keys.push_back(item.key());
    }
  }
  const auto line = [&keys](auto field) {
    std::string text;
    for (std::size_t i = 0; i < keys.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(field(keys[i]));
    return text + "\n";
  };
  std::string out = line([](const std::string& key) { return Json(key); });
  for (const Json& row : report.rows)
    out += line([&row](const std::string& key) { return with_infinities_named(at_or_null(row, key)); });
  return out;
}

std::string to_json(const Report& report) {
  return with_infinities_named({{"context", report.context}, {"rows", report.rows}}).dump(2) + "\n";
}

void OutputOptions::add_to(const App& app, const std::string& name_of_file_option) {
  file_option = name_of_file_option;
  app.add_option("--format", format, "md, csv or json; infinity is \"inf\" there").capture_default_str();
  app.add_option(file_option, file, "Write the table to this file, whole or not at all, in place of stdout");
}

void OutputOptions::validate() const {
  if (format != "md" && format != "csv" && format != "json") {
    checkpoint::throw_input_error("--format: \"", format, "\" is not one of md, csv, json");
  }
  expect_text("the command line", command_line());
  require_folder_of("the table's file", file);
}

void OutputOptions::expect_text(const std::string& what, const std::string& text) const {
  if (format == "json" && !is_utf8(text)) {
    checkpoint::throw_input_error("--format: ", what, " is not UTF-8, and json holds nothing else; take md or csv");
  }
}

void OutputOptions::expect_other_file(const std::string& other_what, const std::string& other) const {
  require_other_file(file_option, file, other_what, other);
}

void OutputOptions::emit(const Report& report) const {
  const std::string text = format == "json" ? to_json(report) : format == "csv" ? to_csv(report) : to_markdown(report);
  if (file.empty() || file == "-") {
    print(text);
  } else {
    checkpoint::write_text_file(file, text);
  }
}

}  // namespace gatefold::cli
