#include "apps/toolkit/input_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace gimbal {
namespace {

constexpr size_t kPiece = 1 << 20;

Error failed(const std::string& name) {
  return {errno == ENOENT ? Code::NotFound : Code::Failed,
          format("cannot read {}: {}", name, std::strerror(errno)), ""};
}

Result<std::string> read_to_end(int fd, const std::string& name, const std::function<uint64_t()>& max_bytes) {
  std::string text;
  uint64_t most = kPiece;
  bool asked = false;
  for (;;) {
    const size_t begin = text.size();
    if (begin > most) {
      if (!asked) most = std::max<uint64_t>(most, max_bytes());
      if (std::exchange(asked, true) || begin > most)
        return Error{Code::Usage,
                     format("{} has more than {}, the most that can be used here", name, human_bytes(most)),
                     "give less text, or for a prompt a larger --ctx"};
    }
    text.resize(begin + std::min<size_t>(kPiece / 16, size_t(most + 1 - begin)));
    const ssize_t n = ::read(fd, text.data() + begin, text.size() - begin);
    text.resize(begin + size_t(std::max<ssize_t>(n, 0)));
    if (n == 0) return text;
    if (n < 0 && errno != EINTR) return failed(name);
  }
}

}  // namespace

Result<std::string> read_text(const std::string& path, const std::function<uint64_t()>& max_bytes) {
  if (path == "-") return read_to_end(STDIN_FILENO, "stdin", max_bytes);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);  // waits for the writer of a FIFO
  if (fd < 0) return failed(gimbal::quoted(path));
  struct stat st;
  auto text = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)
                  ? Result<std::string>(
                        Error{Code::Failed, format("{} is a folder, not a file", gimbal::quoted(path)), ""})
                  : read_to_end(fd, gimbal::quoted(path), max_bytes);
  ::close(fd);
  return text;
}

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return text;
}

}  // namespace gimbal
