// Ctrl-C ends a generation in order: the first one is noted here, the second one kills the program as usual.
#pragma once

namespace gimbal {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  // Forgets a Ctrl-C that was dealt with, and waits for the next first one.
  void rearm();
  static bool interrupted();
};

}  // namespace gimbal
