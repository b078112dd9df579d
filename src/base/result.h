// Failure is a value: an error that explains the failure and its remedy. The library never throws on bad
// input, aborts or prints; it returns one of these.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gimbal {

// The kind of failure. The command line maps these to exit codes (apps/exit_code.h).
enum class Code : uint8_t {
  Failed,       // the operation failed at run time
  Usage,        // an invalid request
  NotFound,     // a missing file, model, device or name
  Malformed,    // a model file that violates its format
  Unsupported,  // well-formed, but not supported by this build
  NoBackend,    // no device satisfies the request
  OutOfMemory,  // does not fit, or an allocation failed
  DeviceLost,
};

// A suggested change of a setting, by its library name: "context", "cache_type", "gpu_layers".
struct Change {
  const char* field;
  std::string value;   // suggested value; empty if only the user can choose it
  std::string effect;  // its effect: "would fit"; may be empty
};

// Messages for people never mention command-line options: a setting is written 'context', in quotes, by its
// library name, and a front end substitutes its own name. The other fields carry the same information for
// programs.
struct [[nodiscard]] Error {
  Code code = Code::Failed;
  std::string message;       // what happened, where, expected and found; whole lines without a final newline
  std::string remedy;        // what to do; may be empty
  const char* reason = "";   // a stable identifier for programs (below, device/reason.h); may be empty
  const char* field = "";    // the setting at fault; a literal, or empty
  std::string value, limit;  // its value, and the allowed range: "7", "from 0 to 1"
  std::vector<Change> changes;  // suggestions, best first

  // Not inline: otherwise every user of Result would contain a copy of this code.
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

// Error::reason of failures unrelated to devices.
namespace reason {
inline constexpr const char* kOutOfRange = "out-of-range";  // `field` is `value` but must be `limit`
inline constexpr const char* kContextFull = "context-full";
inline constexpr const char* kNoSuchModel = "no-such-model";
inline constexpr const char* kAmbiguousModel = "ambiguous-model";
inline constexpr const char* kPackedUnusable = "packed-unusable";  // `value` is the file of packed weights
inline constexpr const char* kCancelled = "cancelled";
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

// The error of an operation that its caller ended.
inline Error cancelled() { return {Code::Failed, "interrupted", "", reason::kCancelled}; }

// Parts that a build of gimbal can leave out: the option GIMBAL_FEATURES (cmake/features.cmake).

// The error of a build without `feature`. `subject` begins the sentence, such as "pictures".
Error absent_feature_error(std::string_view subject, std::string_view feature);

}  // namespace gimbal
