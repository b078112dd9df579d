// Text that a command works on: given as it is, out of a file, or from stdin.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"

namespace gimbal {

// All of stdin. Errors: Failed with the system's reason.
Result<std::string> read_stdin();
// A file's bytes; "-" is stdin.
Result<std::string> read_text(const std::string& path);
// Without one newline at the end, which editors and `echo` put there.
std::string without_last_newline(std::string text);

}  // namespace gimbal
