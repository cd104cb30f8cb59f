#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/app.hpp"

// What a subcommand prints: a table, and what is known about how it came about.
namespace gatefold::cli {

using Json = nlohmann::ordered_json;

// How a column of the Markdown table shows a field of the rows.
struct Column {
  std::string key;
  std::string title;
  std::string (*text)(const Json& value);
};

struct Report {
  std::string title;               // Markdown: the line above the table
  std::vector<Column> columns;     // Markdown: which fields it shows
  std::vector<Json> rows;          // objects with the same keys; JSON and CSV have all of them
  std::vector<std::string> notes;  // Markdown: lines below the table
  Json context;                    // JSON only
};

struct OutputOptions {
  std::string format = "md";
  std::string file;
  std::string file_option = "--output";

  void add_to(const App& app, const std::string& name_of_file_option = "--output");

  // Called before any long work; they throw checkpoint::InputError.
  void validate() const;
  void expect_text(const std::string& what, const std::string& text) const;  // that the report will hold, of the user's
  void expect_other_file(const std::string& other_what, const std::string& other) const;  // that is read; "" is none

  void emit(const Report& report) const;  // to stdout, or whole to the file
};

std::string to_markdown(const Report& report);
std::string to_csv(const Report& report);
std::string to_json(const Report& report);

// Texts of fields. null is "-".
std::string plain_text(const Json& value);
std::string time_text(const Json& microseconds);
std::string bytes_text(const Json& bytes);
std::string ratio_text(const Json& ratio);
std::string error_text(const Json& error);
std::string number_text(const Json& number);
std::string percent_text(const Json& share);

// What every result carries: version, commit, command line, date.
void remember_command_line(int argc, char** argv);
const std::string& command_line();
Json base_context();

}  // namespace gatefold::cli
