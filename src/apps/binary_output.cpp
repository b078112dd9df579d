#include "apps/binary_output.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/terminal.h"
#include "base/format.h"

namespace gimbal {

Result<BinaryOutput> BinaryOutput::open(const std::optional<std::string>& path) {
  if (!path || *path == "-") {
    if (stdout_is_terminal())
      return Error{Code::Usage, "raw numbers are not for a terminal",
                   "give -o FILE, or send stdout to a file or a program"};
    return BinaryOutput(stdout, "stdout");
  }
  std::FILE* f = std::fopen(path->c_str(), "wbe");
  if (!f) return Error{Code::Failed, format("cannot write '{}': {}", *path, std::strerror(errno)), ""};
  return BinaryOutput(f, *path);
}

BinaryOutput::BinaryOutput(BinaryOutput&& o) noexcept
    : file_(std::exchange(o.file_, nullptr)), path_(std::move(o.path_)) {}
BinaryOutput::~BinaryOutput() {
  if (file_ && file_ != stdout) std::fclose(file_);
}

Error BinaryOutput::system_error() const {
  return {Code::Failed, format("cannot write '{}': {}", path_, std::strerror(errno)), ""};
}

Status BinaryOutput::write(const void* data, size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) != bytes) return system_error();
  return Done{};
}

Status BinaryOutput::close() {
  std::FILE* f = std::exchange(file_, nullptr);
  if ((f == stdout ? std::fflush(f) : std::fclose(f)) != 0) return system_error();
  return Done{};
}

}  // namespace gimbal
