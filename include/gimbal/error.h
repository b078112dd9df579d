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
  Usage,        // the request makes no sense
  NotFound,     // a file, model or device that is not there
  Malformed,    // a model file that breaks its format
  Unsupported,  // well-formed, but this version cannot do it
  NoBackend,    // no device satisfies the request
  OutOfMemory,
  DeviceLost,
};

// A setting that would help.
struct Change {
  std::string field;   // a member of Options, ModelOptions or TextOptions: "context"
  std::string value;   // to give it; empty where only the caller can know
  std::string effect;  // what this does: "would fit"; may be empty
};

struct Error {
  Code code = Code::Failed;
  std::string message;          // what happened, where, expected and found; for people
  std::string remedy;           // what to do; may be empty
  std::string reason;           // a word for programs that never changes: "driver-too-old"; may be empty
  std::string field;            // the setting at fault: "top_p"; may be empty
  std::string value, limit;     // that it has, and what it must be
  std::vector<Change> changes;  // that would help, best first
};

// A value, or why there is none. Asking for the one that it does not hold is undefined.
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
