#pragma once

#include <cstdio>
#include <functional>
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
