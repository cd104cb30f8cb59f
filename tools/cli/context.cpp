#include <chrono>
#include <ctime>
#include <string>

#include "cli/report.hpp"
#include "commit.hpp"
#include "gatefold/gatefold.h"

namespace gatefold::cli {
namespace {

std::string& remembered() {
  static std::string line;
  return line;
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\"'\\$*?&|;<>()`") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

}  // namespace

void remember_command_line(int argc, char** argv) {
  std::string& line = remembered();
  line = "gatefold";  // not argv[0]: where the program was installed says nothing about the result
  for (int i = 1; i < argc; ++i) line += " " + quoted(argv[i]);
}

const std::string& command_line() { return remembered(); }

Json base_context() {
  return {
      {"version", gatefold_version()}, {"commit", GATEFOLD_COMMIT}, {"command", command_line()}, {"date", utc_now()}};
}

}  // namespace gatefold::cli
