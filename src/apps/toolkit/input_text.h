// Reads a command's input text: from an argument, a file, a pipe or stdin.
#pragma once
#include <functional>
#include <string>

#include "base/file.h"

namespace gimbal {

// Reads all of stdin ("-"), a file (its reported size is ignored), or a pipe or device such as <(...), a
// FIFO and /dev/stdin. Calls `max_bytes` if there is more than a megabyte; longer text is a Usage error.
// Other errors: the system's.
Result<std::string> read_text(
    const std::string& path, const std::function<uint64_t()>& max_bytes = [] { return kMaxFileBytes; });
// Without a single trailing newline, as editors and `echo` add it.
std::string without_last_newline(std::string text);

}  // namespace gimbal
