#include "apps/input_text.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/format.h"

namespace gimbal {

Result<std::string> read_stdin() {
  std::string text;
  char piece[1 << 16];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, piece, sizeof piece);
    if (n == 0) return text;
    if (n > 0) text.append(piece, size_t(n));
    else if (errno != EINTR)
      return Error{Code::Failed, format("cannot read stdin: {}", std::strerror(errno)), ""};
  }
}

Result<std::string> read_text(const std::string& path) {
  return path == "-" ? read_stdin() : read_file(path);
}

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return text;
}

}  // namespace gimbal
