// Failure is a value: what happened, and what the reader can do about it. Nothing in the library throws on
// bad input, aborts or prints; it returns one of these.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace gimbal {

// What kind of failure. The command line maps these to exit codes (apps/exit_code.h).
enum class Code : uint8_t {
  Failed,       // something went wrong while running
  Usage,        // the request itself makes no sense
  NotFound,     // a file, model, device or name that is not there
  Malformed,    // a model file that breaks its format
  Unsupported,  // well-formed, but this build cannot do it
  NoBackend,    // no device satisfies the request
  OutOfMemory,  // would not fit, or an allocation failed
  DeviceLost,
};

struct [[nodiscard]] Error {
  Code code = Code::Failed;
  std::string
      message;  // what happened, where, expected and found; one or more full lines, no newline at the end
  std::string remedy;  // what to do about it; may be empty
  // For programs: why a device or a backend cannot be had, one of device/reason.h. A literal, or empty.
  const char* reason = "";
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return v_.index() == 0; }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T&& operator*() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  const Error& error() const { return std::get<1>(v_); }

 private:
  std::variant<T, Error> v_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace gimbal
