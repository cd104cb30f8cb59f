#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

// What the benchmark programs of this folder share: their options, result files and main.
namespace gatefold::bench {

// An option and what takes its value.
struct Option {
  std::string_view name;
  std::function<void(const char* value)> take;
};

// argv[first], ...: names, each followed by its value. Throws std::invalid_argument for a name that is not among the
// options or has no value.
void parse_options(int argc, char** argv, int first, const std::vector<Option>& options);

// The whole number from `least` to `most` that a text is. Throws std::invalid_argument, which names `what` and the
// text, where it is none.
std::int64_t whole_number(std::string_view what, std::string_view text, std::int64_t least,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max());

// Those of "1,2,4", one at least.
std::vector<std::int64_t> whole_numbers(std::string_view what, const std::string& text, std::int64_t least);

// Options with any text, with a whole number, and with a time that is finite and above zero.
Option text_option(std::string_view name, std::string& value);
Option count_option(std::string_view name, int& value, int least, int most = std::numeric_limits<int>::max());
Option time_option(std::string_view name, double& value);

// A file {"context": {...}, "rows": [...]}: what ran, when, on which GPU, by which command.
class ResultFile {
 public:
  ResultFile(const std::string& path, int argc, char** argv);  // throws std::runtime_error
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;
  ~ResultFile();

  // Where to print the next row's object.
  std::FILE* next_row();

 private:
  std::FILE* file_;
  bool first_ = true;
};

// The exit code of a program: 0, 2 for arguments that are wrong (std::invalid_argument), 1 for other failures, which
// are named on stderr.
int guarded_main(const char* program, const std::function<void()>& run);

}  // namespace gatefold::bench
