#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/standard_streams.hpp"

namespace gatefold::cli {
namespace {

constexpr int bad_input = 2;  // a command returns 1 itself, where a check failed

int fail(const std::string& message) {
  print_error(message);
  return bad_input;
}

int run(int argc, char** argv) {
  const auto add_commands = [](const App& app) {
    app.footer("Exit code: 0 good, 1 a check failed, 2 bad usage or input.");
    return std::vector<Command>{add_info(app),    add_run(app),    add_verify(app),     add_bench(app),
                                add_explain(app), add_memory(app), add_checkpoint(app), add_swap_ffn(app)};
  };
  return run_command_line(argc, argv, std::string("gatefold ") + gatefold_version(), add_commands);
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
