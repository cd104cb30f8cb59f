#pragma once

#include <exception>
#include <locale>
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

// A failure on its way through code that returns something else. The interface turns it back into its status.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.message().c_str(); }
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

inline void throw_if_failed(Status status) {
  if (!status.ok()) throw StatusError(std::move(status));
}

// The parts, streamed one after the other. Numbers are written as C writes them, whatever the program's locale.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
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
