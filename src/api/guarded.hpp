#pragma once

#include <exception>
#include <new>
#include <string>

#include "core/float_environment.hpp"
#include "core/status.hpp"

// How every function of the C interface answers: a code, and for the calling thread one line.
namespace gatefold {

// What the strings handed out "until this thread's next call" point into.
struct ThreadStrings {
  std::string error;
  std::string answer;
  const char* fixed_error = nullptr;  // in place of `error`: a message that takes no memory
};

inline ThreadStrings& thread_strings() {
  thread_local ThreadStrings strings;
  return strings;
}

inline gatefold_status report(const Status& status) {
  thread_strings().error = status.message();
  thread_strings().fixed_error = nullptr;
  return status.code();
}

inline gatefold_status out_of_memory() noexcept {
  thread_strings().fixed_error = "host memory: an allocation failed";
  return GATEFOLD_ERROR_OUT_OF_MEMORY;
}

// Runs a body that returns a Status, and lets nothing in or out but that: no exception leaves, and the caller's
// floating-point environment is neither used nor changed.
template <class Body>
gatefold_status guarded(Body body) noexcept {
  const UsualFloatEnvironment environment;
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const StatusError& error) {
    try {
      return report(error.status());
    } catch (...) {
      return out_of_memory();
    }
  } catch (const std::exception& error) {
    try {
      return report({GATEFOLD_ERROR_INTERNAL, error.what()});
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return GATEFOLD_ERROR_INTERNAL;
  }
}

inline Status null_argument(const char* function, const char* argument) {
  return invalid(function, ": ", argument, " is null, expected a pointer");
}

}  // namespace gatefold
