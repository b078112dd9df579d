#include "apps/toolkit/input_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "apps/toolkit/terminal.h"
#include "base/format.h"
#include "base/text.h"
#include "files/model_source.h"

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

namespace {

// A path of something already open (/dev/stdout, /dev/fd/3), a device or a pipe: nothing to replace.
bool is_stream(const std::string& path) {
  struct stat there, out;
  if (stat(path.c_str(), &there) != 0) return false;
  if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) return true;
  if (path.starts_with("/dev/fd/") || path.starts_with("/proc/")) return true;
  return fstat(STDOUT_FILENO, &out) == 0 && there.st_dev == out.st_dev && there.st_ino == out.st_ino;
}

}  // namespace

Result<BinaryOutput> BinaryOutput::open(const std::optional<std::string>& path,
                                        const std::function<bool(const std::string&)>& is_input) {
  if (!path || *path == "-" || *path == "/dev/stdout") {
    if (stdout_is_terminal())
      return Error{Code::Usage, "raw numbers are not for a terminal",
                   "give -o FILE, or send stdout to a file or a program"};
    return BinaryOutput(stdout, "stdout");
  }
  if (is_input(*path))
    return Error{Code::Usage, format("the output {} is the file that is read", gimbal::quoted(*path)),
                 "give another file with -o"};
  if (is_stream(*path)) {
    std::FILE* f = std::fopen(path->c_str(), "abe");
    if (!f) return Error{Code::Failed, format("cannot write '{}': {}", *path, std::strerror(errno)), ""};
    return BinaryOutput(f, *path);
  }
  auto draft = DraftFile::create(*path);
  if (!draft) return draft.error();
  return BinaryOutput(std::move(*draft));
}

void BinaryOutput::close_file(std::FILE* f) {
  if (f && f != stdout) std::fclose(f);
}

Error BinaryOutput::system_error() const {
  return {Code::Failed, format("cannot write '{}': {}", path_, std::strerror(errno)), ""};
}

Status BinaryOutput::write(const void* data, size_t bytes) {
  if (draft_) return draft_->write(data, bytes);
  if (std::fwrite(data, 1, bytes, file_.get()) != bytes) return system_error();
  return Done{};
}

Status BinaryOutput::close() {
  if (draft_) return draft_->commit();
  std::FILE* f = file_.release();
  if ((f == stdout ? std::fflush(f) : std::fclose(f)) != 0) return system_error();
  return Done{};
}

Status may_write(const ModelSource& source, const std::string& path, bool force) {
  std::error_code e;
  if (source.is(path))
    return Error{Code::Usage, format("{} is a file of the model itself", gimbal::quoted(path)),
                 "write to another file"};
  if (std::filesystem::exists(path, e) && !force)
    return Error{Code::Usage, format("{} exists already", gimbal::quoted(path)), "add --force to replace it"};
  return Done{};
}

}  // namespace gimbal
