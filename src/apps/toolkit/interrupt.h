// Handles Ctrl-C: the first one is recorded, to end a generation cleanly; the second one kills the program.
#pragma once

namespace gimbal {

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

}  // namespace gimbal
