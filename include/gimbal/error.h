// Failures as values. Nothing in gimbal throws on bad input, aborts or prints.
//
// Everything in include/gimbal is in namespace gimbal; the inner one keeps its symbols apart from the
// library's own.
#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gimbal::v1 {

enum class Code {
  Failed,       // went wrong while running
  Usage,        // an argument or setting is wrong
  NotFound,     // no such file, model or device
  Malformed,    // the model file breaks its format
  Unsupported,  // valid, but not implemented by this version
  NoBackend,    // no device satisfies the request
  OutOfMemory,
  DeviceLost,
};

// A setting that would help.
struct Change {
  std::string field;   // a member of Options, ModelOptions or TextOptions: "context"
  std::string value;   // its new value; empty: only the caller can know it
  std::string effect;  // of the change: "would fit"; may be empty
};

struct Error {
  Code code = Code::Failed;
  std::string message;          // what happened, where, expected and found; for people
  std::string remedy;           // what to do; may be empty
  std::string reason;           // a stable word for programs: "driver-too-old"; may be empty
  std::string field;            // the setting at fault: "top_p"; may be empty
  std::string value, limit;     // its value, and the allowed ones
  std::vector<Change> changes;  // that would help, best first
};

// A value, or the error that prevented it. Accessing the one that it does not hold is undefined behaviour.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return v_.index() == 0; }
  T& operator*() & { return *std::get_if<0>(&v_); }
  const T& operator*() const& { return *std::get_if<0>(&v_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&v_)); }
  T* operator->() { return std::get_if<0>(&v_); }
  const T* operator->() const { return std::get_if<0>(&v_); }
  const Error& error() const { return *std::get_if<1>(&v_); }

 private:
  std::variant<T, Error> v_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
