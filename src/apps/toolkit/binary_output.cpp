#include "apps/toolkit/binary_output.h"

#include <sys/stat.h>
#include <unistd.h>

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
