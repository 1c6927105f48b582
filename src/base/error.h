// The one exception type of the project, and the check for programmer errors. Knows nothing but text.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace dgemma {

// What went wrong, from the caller's side; the command line and the server map each kind to one code
// (docs/architecture.md).
enum class ErrorKind {
  bad_input,    // the file, prompt or request is wrong
  unsupported,  // understood, but not built or not possible here
  resource,     // memory, disk, a full queue
  internal,     // a bug
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// A message says what was expected, what was found, where, and what to do.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::bad_input, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dgemma

// For programmer errors at the borders of ops; not reachable from user input.
#define DGEMMA_CHECK(condition)                                                                                 \
  do {                                                                                                          \
    if (!(condition))                                                                                           \
      ::dgemma::fail(::dgemma::ErrorKind::internal, "{}:{}: check failed: {}", __FILE__, __LINE__, #condition); \
  } while (false)
