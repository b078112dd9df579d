// The keyboard while a program works: Ctrl-C, and typed characters that are not shown.
#pragma once

namespace gimbal {

// Handles Ctrl-C: the first one is recorded, to end a generation cleanly; the second one kills the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  // Clears a handled Ctrl-C; the next one counts as the first again.
  void rearm();
  static bool interrupted();
  // The second Ctrl-C calls it before it ends the program. It must be async-signal-safe. nullptr: nothing.
  static void at_end(void (*restore)());
};

// Hides typed characters while the program writes.

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
