// Raw numbers to a file or to stdout, which must not be a terminal. A file is replaced when all of them are
// written, so a failure leaves what was there.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"

namespace gimbal {

class BinaryOutput {
 public:
  // "-" and nothing: stdout. Devices and pipes are written to as they are. `is_input` tells whether a path
  // names what is read. Errors: Usage when it does, and when stdout is a terminal; Failed with the system's
  // reason.
  static Result<BinaryOutput> open(const std::optional<std::string>& path,
                                   const std::function<bool(const std::string&)>& is_input);

  Status write(const void* data, size_t bytes);
  // Errors that show up only now belong to the result.
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

}  // namespace gimbal
