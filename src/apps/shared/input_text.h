// Text that a command works on: given as it is, out of a file or a pipe, or from stdin.
#pragma once
#include <functional>
#include <string>

#include "base/file.h"

namespace gimbal {

// All of stdin ("-"), of a file whatever its size is said to be, or of a pipe or device such as <(...), a
// FIFO and /dev/stdin. `max_bytes` is asked once there is more than a megabyte; what is longer than it is
// Usage. Other errors: those of the system.
Result<std::string> read_text(
    const std::string& path, const std::function<uint64_t()>& max_bytes = [] { return kMaxFileBytes; });
// Without one newline at the end, which editors and `echo` put there.
std::string without_last_newline(std::string text);

}  // namespace gimbal
