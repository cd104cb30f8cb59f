#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gatefold::checkpoint {

// A file, folder or name given by the user is wrong. what() is one line that names the file, the tensor and the values
// that disagree.
class InputError : public std::runtime_error {
 public:
  // Names and texts from a file may be anything: control characters are escaped, and a very long line is cut.
  explicit InputError(std::string_view line);
};

// The parts, streamed one after the other.
template <class... Parts>
[[noreturn]] void throw_input_error(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts);
  throw InputError(line.str());
}

// What errno means, in words.
std::string error_text(int number);

}  // namespace gatefold::checkpoint
