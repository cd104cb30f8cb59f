#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The command line. CLI11, which reads it, is known to app.cpp alone: including it takes ten seconds of compiling, more
// than all that a subcommand has of its own.
namespace gatefold::cli {

// An option of a subcommand; each function returns the option again.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  const Option& capture_default_str() const;  // --help shows the value that the variable has now
  const Option& delimiter(char between) const;
  const Option& required(bool is_required = true) const;
  const Option& excludes(const Option& other) const;

 private:
  CLI::Option* option_;
};

class App {
 public:
  explicit App(CLI::App& app) : app_(&app) {}

  // `value` gets what follows the option's name, and must live until the command line has been parsed. T: std::string,
  // int, std::int64_t, std::uint64_t, double, an optional or a vector of one of them. A number is one in decimal digits
  // that T holds.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& description) const;
  Option add_flag(const std::string& name, bool& value, const std::string& description) const;  // "!--no": false
  App add_subcommand(const std::string& name, const std::string& description) const;
  Option option(const std::string& name) const;  // that has been added
  void remove_option(const std::string& name) const;

  void footer(const std::string& text) const;  // of --help
  void require_subcommand() const;             // exactly one

  // Once the command line has been parsed.
  bool parsed() const;  // this subcommand was chosen
  bool given(const std::string& option) const;

 private:
  CLI::App* app_;
};

// A subcommand: what it does is called once the command line has been parsed, and returns the exit code.
struct Command {
  App app;
  std::function<int()> run;
};

// The subcommand's exit code. Prints the help or the version where the command line asks for it; throws
// std::runtime_error, of one line, where it is wrong.
int run_command_line(int argc, char** argv, const std::string& version,
                     const std::function<std::vector<Command>(const App&)>& add_commands);

}  // namespace gatefold::cli
