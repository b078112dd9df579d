// A child process that computes, and the socket to it.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "workers/channel.h"

namespace gimbal {

// In the child the socket is descriptor 3.
inline constexpr int kWorkerSocket = 3;

class WorkerProcess {
 public:
  WorkerProcess() = default;  // none
  // Runs `command` (its first word: the program's path). Errors: Failed, with the system's reason.
  static Result<WorkerProcess> start(const std::vector<std::string>& command);
  WorkerProcess(WorkerProcess&& other) noexcept : WorkerProcess() { *this = std::move(other); }
  WorkerProcess& operator=(WorkerProcess&& other) noexcept {
    std::swap(pid_, other.pid_), std::swap(channel, other.channel);
    return *this;
  }
  ~WorkerProcess() { kill(); }

  explicit operator bool() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  // Ends it at once and waits for its end; how it ended if it did so itself: "ended by signal 11".
  std::string kill();
  // Closes the socket, upon which a worker ends; kills it when it has not within `milliseconds`.
  void stop(int milliseconds);

  Channel channel;

 private:
  pid_t pid_ = 0;
};

}  // namespace gimbal
