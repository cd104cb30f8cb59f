#include "cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "checkpoint/input_error.hpp"

namespace gatefold::cli {

void occupy_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // Opened the wrong way round: reading, or writing, fails. open() takes the lowest number that is free.
    if (::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) checkpoint::throw_input_error("stdout: cannot write: ", checkpoint::error_text(errno));
}

void print_error(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');  // whoever wrote it
  while (!message.empty() && message.back() == ' ') message.pop_back();
  std::fputs(("gatefold: " + message + "\n").c_str(), stderr);
}

}  // namespace gatefold::cli
