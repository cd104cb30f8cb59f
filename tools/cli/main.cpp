#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/standard_streams.hpp"

namespace gatefold::cli {
namespace {

constexpr int good = 0;
constexpr int bad_input = 2;  // a command returns 1 itself, where a check failed

int fail(const std::string& message) {
  print_error(message);
  return bad_input;
}

// CLI11 2.1 reads 010 as octal, nothing as no value at all, and makes the nearest representable number of one that is
// too large. Returns "", or what is wrong; then CLI11 gets the number in a form that it can't misread.
template <class Number>
std::string read_strictly(std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return text + " does not fit 64 bits";
  if (error != std::errc{} || stop != end) return '"' + text + "\" is not a number in decimal digits";
  if constexpr (std::is_integral_v<Number>) {
    text = std::to_string(number);
  } else if (!std::isfinite(number)) {
    return text + " is not a finite number";
  }
  return "";
}

void read_numbers_strictly(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) read_numbers_strictly(*command);
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.find("UINT") != std::string::npos) {
      option->transform(CLI::Validator(read_strictly<std::uint64_t>, ""));
    } else if (type.find("INT") != std::string::npos) {
      option->transform(CLI::Validator(read_strictly<std::int64_t>, ""));
    } else if (type.find("FLOAT") != std::string::npos) {
      option->transform(CLI::Validator(read_strictly<double>, ""));
    }
  }
}

// In words, where CLI11 counts.
std::string message_of(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::string counted = ": At Most 1 required but received ";
  const auto found = text.find(counted);
  if (found == std::string::npos) return text;
  return text.substr(0, found) + ": given " + text.substr(found + counted.size()) + " times, can be given once";
}

int run(int argc, char** argv) {
  CLI::App app{"The gated MLP of transformers, fused.", "gatefold"};
  app.set_version_flag("--version", std::string("gatefold ") + gatefold_version());
  app.require_subcommand(1);
  app.footer("Exit code: 0 good, 1 a check failed, 2 bad usage or input.");
  const std::vector<Command> commands{add_info(app),    add_run(app),    add_verify(app),     add_bench(app),
                                      add_explain(app), add_memory(app), add_checkpoint(app), add_swap_ffn(app)};
  for (const Command& command : commands) read_numbers_strictly(*command.app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      std::ostringstream text;
      app.exit(error, text, text);  // the help or the version
      print(text.str());
      return good;
    }
    return fail(message_of(error));
  }
  const auto chosen = std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app->parsed(); });
  return chosen->run();
}

}  // namespace
}  // namespace gatefold::cli

int main(int argc, char** argv) {
  gatefold::cli::occupy_standard_streams();
  gatefold::cli::remember_command_line(argc, argv);
  try {
    return gatefold::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    return gatefold::cli::fail("out of memory: the sizes asked for do not fit on this machine");
  } catch (const std::exception& error) {
    return gatefold::cli::fail(error.what());
  }
}
