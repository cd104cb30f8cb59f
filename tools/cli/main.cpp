#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <string>
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

// CLI11 2.1 makes the nearest representable number of one that is too large.
void refuse_overflow(CLI::App& app) {
  const auto refuse = [](const std::string& text) { return text + " does not fit 64 bits"; };
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.find("INT") == std::string::npos) continue;
    const bool is_unsigned = type.find("UINT") != std::string::npos;
    option->check([=](const std::string& text) {
      errno = 0;
      if (is_unsigned) {
        std::strtoull(text.c_str(), nullptr, 10);
      } else {
        std::strtoll(text.c_str(), nullptr, 10);
      }
      return errno == ERANGE ? refuse(text) : std::string();
    });
  }
}

int run(int argc, char** argv) {
  CLI::App app{"The gated MLP of transformers, fused.", "gatefold"};
  app.set_version_flag("--version", std::string("gatefold ") + gatefold_version());
  app.require_subcommand(1);
  app.footer("Exit code: 0 good, 1 a check failed, 2 bad usage or input.");
  const std::vector<Command> commands{add_info(app),    add_run(app),    add_verify(app),    add_bench(app),
                                      add_explain(app), add_memory(app), add_checkpoint(app)};
  for (const Command& command : commands) refuse_overflow(*command.app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      std::ostringstream text;
      app.exit(error, text, text);  // the help or the version
      print(text.str());
      return good;
    }
    return fail(error.what());
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
