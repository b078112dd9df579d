// A file mapped read-only, in pages that all processes share. Where such a file loses what is mapped (it is
// cut short, its disk fails), touching it is the signal SIGBUS, which ends a program. While there is a
// guarded mapping, this process has a handler for it: zeros take the place of what is lost, and lost() says
// so, so that whoever computed with them can throw the outcome away. Any other SIGBUS goes to whoever handled
// it before.
#pragma once
#include "base/bytes.h"
#include "base/file.h"

namespace gimbal {

// Move-only; unmaps when destroyed.
class GuardedMapping {
 public:
  // The whole file, as large as it is now. Errors: Failed with the system's reason, or when kMost of them are
  // there; OutOfMemory.
  static Result<GuardedMapping> map(const InputFile&);
  GuardedMapping() = default;
  GuardedMapping(GuardedMapping&&) noexcept;
  GuardedMapping& operator=(GuardedMapping&&) noexcept;
  ~GuardedMapping();

  Bytes bytes() const { return bytes_; }
  bool lost() const;  // whether something was touched that the file had lost

  static constexpr int kMost = 64;  // of a process at once

 private:
  Bytes bytes_;
  int watch_ = -1;  // its place in the handler's list
};

}  // namespace gimbal
