// The words that a user gives a backend, "key=value" lines (device/abi.h), taken apart once for all GPU
// backends.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/runtime.h"

namespace gimbal::simt {

class Options {
 public:
  // `lines` may be nullptr. Fails at a line without '='.
  static Failure parse(const char* lines, Options* out);

  // The value of a key, which counts as known from then on.
  std::optional<std::string> take(const std::string& key);
  // Likewise, a whole number from 0 on, as decimal digits; fails at anything else. `out` stays when the key
  // is not there.
  Failure take_number(const std::string& key, uint64_t* out);
  Failure take_flag(const std::string& key, bool* out);  // 0 or 1
  // Fails when a key was given that nobody took.
  Failure unknown() const;

 private:
  std::vector<std::pair<std::string, std::string>> left_;
};

}  // namespace gimbal::simt
