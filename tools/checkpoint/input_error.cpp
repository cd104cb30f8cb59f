#include "checkpoint/input_error.hpp"

#include <system_error>

namespace gatefold::checkpoint {
namespace {

constexpr std::size_t longest_line = 1000;

std::string printable(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string line;
  for (const char c : text.substr(0, longest_line)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
    } else {
      line += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return text.size() > longest_line ? line + "..." : line;
}

}  // namespace

InputError::InputError(std::string_view line) : std::runtime_error(printable(line)) {}

std::string error_text(int number) { return std::generic_category().message(number); }

}  // namespace gatefold::checkpoint
