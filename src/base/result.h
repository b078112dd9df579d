// Failure is a value: what happened, and what the reader can do about it. Nothing in the library throws on
// bad input, aborts or prints; it returns one of these.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

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

// A setting that would help, by the name that the library gives it: "context", "cache_type", "gpu_layers".
struct Change {
  const char* field;
  std::string value;   // to give it; empty where only the user can know
  std::string effect;  // what this does: "would fit"; may be empty
};

// The words for people name no option of any program: a setting is written 'context', in quotes, by its name
// in the library, and a front end puts its own name there. The fields behind the words say the same to
// programs.
struct [[nodiscard]] Error {
  Code code = Code::Failed;
  std::string message;       // what happened, where, expected and found; whole lines, no newline at the end
  std::string remedy;        // what to do about it; may be empty
  const char* reason = "";   // a word for programs that never changes (below, device/reason.h); may be empty
  const char* field = "";    // the setting that is at fault; a literal, or empty
  std::string value, limit;  // that it has, and what it must be: "7", "from 0 to 1"
  std::vector<Change> changes;  // that would help, best first

  // Not inline: every Result holds an Error, and would hold a copy of this code, too.
  Error();
  Error(Code code, std::string message, std::string_view remedy = {}, const char* reason = "",
        const char* field = "", std::string_view value = {}, std::string_view limit = {},
        std::vector<Change> changes = {});
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error();
};

// Error::reason of failures that have nothing to do with a device.
namespace reason {
inline constexpr const char* kOutOfRange = "out-of-range";  // `field` is `value`, and must be `limit`
inline constexpr const char* kContextFull = "context-full";
inline constexpr const char* kNoSuchModel = "no-such-model";
inline constexpr const char* kAmbiguousModel = "ambiguous-model";
inline constexpr const char* kPackedUnusable = "packed-unusable";  // `value` is the file of packed weights
}  // namespace reason

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
