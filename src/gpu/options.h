// Parser of a backend's user options, "key=value" lines (device/abi.h),
// shared by all GPU backends.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/runtime.h"

namespace gimbal::gpu {

class Options {
 public:
  // `lines` may be nullptr. Fails on a line without '='.
  static Failure parse(const char* lines, Options* out);

  // The value of a key, which is then known.
  std::optional<std::string> take(const std::string& key);
  // The same for a non-negative decimal number; fails on anything else. `out` is unchanged if the key is
  // missing.
  Failure take_number(const std::string& key, uint64_t* out);
  Failure take_flag(const std::string& key, bool* out);  // 0 or 1
  // Fails if there are unknown keys.
  Failure unknown() const;

 private:
  std::vector<std::pair<std::string, std::string>> left_;
};

}  // namespace gimbal::gpu
