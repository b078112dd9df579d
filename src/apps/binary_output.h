// Raw numbers to a file or to stdout, which must not be a terminal.
#pragma once
#include <cstdio>
#include <optional>
#include <string>

#include "base/result.h"

namespace gimbal {

class BinaryOutput {
 public:
  // "-" and nothing: stdout. Errors: Usage when that is a terminal; Failed with the system's reason.
  static Result<BinaryOutput> open(const std::optional<std::string>& path);
  BinaryOutput(BinaryOutput&& o) noexcept;
  ~BinaryOutput();

  Status write(const void* data, size_t bytes);
  // Errors that show up only now belong to the result.
  Status close();

 private:
  BinaryOutput(std::FILE* f, std::string path) : file_(f), path_(std::move(path)) {}
  Error system_error() const;
  std::FILE* file_;
  std::string path_;
};

}  // namespace gimbal
