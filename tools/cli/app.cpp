#include "cli/app.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include "cli/standard_streams.hpp"

namespace gatefold::cli {
namespace {

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

}  // namespace

const Option& Option::capture_default_str() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::delimiter(char between) const {
  option_->delimiter(between);
  return *this;
}

const Option& Option::required(bool is_required) const {
  option_->required(is_required);
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

template <class T>
Option App::add_option(const std::string& name, T& value, const std::string& description) const {
  return Option(*app_->add_option(name, value, description));
}

template Option App::add_option(const std::string&, std::string&, const std::string&) const;
template Option App::add_option(const std::string&, int&, const std::string&) const;
template Option App::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option App::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option App::add_option(const std::string&, double&, const std::string&) const;
template Option App::add_option(const std::string&, std::optional<std::int64_t>&, const std::string&) const;
template Option App::add_option(const std::string&, std::optional<std::uint64_t>&, const std::string&) const;
template Option App::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option App::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&) const;

Option App::add_flag(const std::string& name, bool& value, const std::string& description) const {
  return Option(*app_->add_flag(name, value, description));
}

App App::add_subcommand(const std::string& name, const std::string& description) const {
  return App(*app_->add_subcommand(name, description));
}

Option App::option(const std::string& name) const { return Option(*app_->get_option(name)); }

void App::remove_option(const std::string& name) const { app_->remove_option(app_->get_option(name)); }

void App::footer(const std::string& text) const { app_->footer(text); }

void App::require_subcommand() const { app_->require_subcommand(1); }

bool App::parsed() const { return app_->parsed(); }

bool App::given(const std::string& option) const { return app_->count(option) > 0; }

int run_command_line(int argc, char** argv, const std::string& version,
                     const std::function<std::vector<Command>(const App&)>& add_commands) {
  CLI::App app{"The gated MLP of transformers, fused.", "gatefold"};
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  const std::vector<Command> commands = add_commands(App(app));
  read_numbers_strictly(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) throw std::runtime_error(message_of(error));
    std::ostringstream text;
    app.exit(error, text, text);  // the help or the version
    print(text.str());
    return 0;
  }
  const auto chosen = std::find_if(commands.begin(), commands.end(), [](const Command& c) { return c.app.parsed(); });
  return chosen->run();
}

}  // namespace gatefold::cli
