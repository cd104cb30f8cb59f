#include "program.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <exception>
#include <gatefold/gatefold.hpp>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "commit.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

std::string utc_now() {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return date;
}

[[noreturn]] void refuse(std::string_view what, std::string_view text, const std::string& wanted) {
  throw std::invalid_argument(std::string(what) + ": \"" + std::string(text) + "\" is not " + wanted);
}

}  // namespace

void parse_options(int argc, char** argv, int first, const std::vector<Option>& options) {
  for (int i = first; i < argc; i += 2) {
    const std::string name = argv[i];
    const auto option = std::ranges::find(options, std::string_view(name), &Option::name);
    if (option == options.end()) {
      std::string message = "\"" + name + "\" is none of the options";
      for (const Option& o : options) message.append(" ").append(o.name);
      throw std::invalid_argument(message);
    }
    if (i + 1 == argc) throw std::invalid_argument(name + " lacks its value");
    option->take(argv[i + 1]);
  }
}

std::int64_t whole_number(std::string_view what, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number < least || number > most) {
    refuse(what, text, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

std::vector<std::int64_t> whole_numbers(std::string_view what, const std::string& text, std::int64_t least) {
  std::vector<std::int64_t> numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) numbers.push_back(whole_number(what, part, least));
  if (numbers.empty()) refuse(what, text, "a list of whole numbers");
  return numbers;
}

Option count_option(std::string_view name, int& value, int least, int most) {
  return {name, [=, &value](const char* text) { value = static_cast<int>(whole_number(name, text, least, most)); }};
}

Option text_option(std::string_view name, std::string& value) {
  return {name, [&value](const char* text) { value = text; }};
}

Option time_option(std::string_view name, double& value) {
  return {name, [=, &value](const char* text) {
            const std::string_view all = text;
            const auto [stop, error] = std::from_chars(all.data(), all.data() + all.size(), value);
            const bool number = error == std::errc{} && stop == all.data() + all.size();
            if (!number || !std::isfinite(value) || value <= 0.0) refuse(name, all, "a time above zero");
          }};
}

ResultFile::ResultFile(const std::string& path, int argc, char** argv) : file_(std::fopen(path.c_str(), "w")) {
  if (file_ == nullptr) throw std::runtime_error(path + ": cannot be written");
  gatefold_device_info info{};
  throw_on_error(gatefold_device_query(GATEFOLD_DEVICE_CUDA, 0, &info));
  int driver = 0;
  int runtime = 0;
  require(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  require(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::string command;
  for (int i = 0; i < argc; ++i) command += (i > 0 ? " " : "") + std::string(argv[i]);
  std::fprintf(file_,
               "{\"context\": {\"gpu\": \"%s\", \"driver_cuda\": %d, \"runtime_cuda\": %d, \"version\": \"%s\", "
               "\"commit\": \"%s\", "
               "\"command\": \"%s\", \"date\": \"%s\"},\n \"rows\": [",
               info.name, driver, runtime, gatefold_version(), GATEFOLD_COMMIT, command.c_str(), utc_now().c_str());
}

ResultFile::~ResultFile() {
  std::fprintf(file_, "\n]}\n");
  std::fclose(file_);
}

std::FILE* ResultFile::next_row() {
  std::fprintf(file_, first_ ? "\n  " : ",\n  ");
  first_ = false;
  return file_;
}

int guarded_main(const char* program, const std::function<void()>& run) {
  try {
    run();
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace gatefold::bench
