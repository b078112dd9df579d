// A read-only file mapping that survives truncation. Its pages are shared by all
// processes. When a mapped file is truncated or its disk fails, reading the missing pages
// raises SIGBUS, which would kill the program. While a guarded mapping exists, a
// process-wide handler substitutes zero pages and sets lost(), so that callers can
// discard results computed from them. Any other SIGBUS is passed to the previous handler.
#pragma once
#include "base/bytes.h"
#include "base/file.h"

namespace gimbal {

// Move-only; unmaps when destroyed.
class GuardedMapping {
 public:
  // Maps the whole file at its current size. Errors: Failed with the system's reason, or if kMost mappings
  // exist already; OutOfMemory.
  static Result<GuardedMapping> map(const InputFile&);
  GuardedMapping() = default;
  GuardedMapping(GuardedMapping&&) noexcept;
  GuardedMapping& operator=(GuardedMapping&&) noexcept;
  ~GuardedMapping();

  Bytes bytes() const { return bytes_; }
  bool lost() const;  // whether a missing page was read

  static constexpr int kMost = 64;  // mappings per process

 private:
  Bytes bytes_;
  int watch_ = -1;  // index in the handler's list
};

}  // namespace gimbal
