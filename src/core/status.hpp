#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "gatefold/gatefold.h"

namespace gatefold {

// A status and, for a failure, the line that gatefold_last_error() returns.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(gatefold_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == GATEFOLD_SUCCESS; }
  gatefold_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  gatefold_status code_ = GATEFOLD_SUCCESS;
  std::string message_;
};

// The parts, streamed one after the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
Status invalid(const Parts&... parts) {
  return {GATEFOLD_ERROR_INVALID_ARGUMENT, concat(parts...)};
}

template <class... Parts>
Status unsupported(const Parts&... parts) {
  return {GATEFOLD_ERROR_UNSUPPORTED, concat(parts...)};
}

}  // namespace gatefold
