// What commands read and write: text from an argument, a file, a pipe or stdin; raw numbers to a file or to
// stdout.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
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

// Writes raw numbers to a file or to stdout, which must not be a terminal. An existing file is replaced
// only when all data is written, so it survives a failure.
class BinaryOutput {
 public:
  // "-" or no path: stdout. Writes directly to devices and pipes. `is_input` reports whether a path
  // names an input file. Errors: Usage if it does, or if stdout is a terminal; Failed with the system's
  // reason.
  static Result<BinaryOutput> open(const std::optional<std::string>& path,
                                   const std::function<bool(const std::string&)>& is_input);

  Status write(const void* data, size_t bytes);
  // Reports errors that only appear on closing.
  Status close();

 private:
  explicit BinaryOutput(DraftFile draft) : draft_(std::move(draft)) {}
  BinaryOutput(std::FILE* f, std::string path) : file_(f, &close_file), path_(std::move(path)) {}
  static void close_file(std::FILE*);
  Error system_error() const;

  std::optional<DraftFile> draft_;
  std::unique_ptr<std::FILE, void (*)(std::FILE*)> file_{nullptr, &close_file};
  std::string path_;
};

class ModelSource;

// Whether a command may write a model made of `source` to `path`. Errors: Usage if it is a file of the
// source, or exists without `force`.
Status may_write(const ModelSource& source, const std::string& path, bool force);

}  // namespace gimbal
