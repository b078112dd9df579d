// Hides typed characters while the program writes.
#pragma once

namespace gimbal {

// While it exists, the terminal of stdin shows no typed characters, and keeps them for the next line that is
// read, also behind Ctrl-C. Nothing without a terminal. One at a time; together with an InterruptGuard,
// whose second Ctrl-C ends the program and restores the terminal first.
class SilentKeys {
 public:
  SilentKeys();
  ~SilentKeys();
  SilentKeys(const SilentKeys&) = delete;
};

}  // namespace gimbal
