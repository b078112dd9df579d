// Signals to single processes. To the system, 0 stands for this process's group, -1 for every process of the
// user and other negative numbers for groups, so a failed fork() or a worker that has not started yet must
// never reach kill() as a number.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <cerrno>

namespace gimbal {

// Sends `signal` to the process `pid`; 0 tests whether it exists. Returns false with errno when the system
// refuses; with EINVAL, without sending, for a `pid` that is not a single process of ours: 1 (init) or less.
inline bool send_signal(pid_t pid, int signal) {
  if (pid <= 1) {
    errno = EINVAL;
    return false;
  }
  return ::kill(pid, signal) == 0;
}

// The same for all processes of the group that `leader` leads.
inline bool send_signal_to_group(pid_t leader, int signal) {
  if (leader <= 1) {
    errno = EINVAL;
    return false;
  }
  return ::kill(-leader, signal) == 0;
}

}  // namespace gimbal
