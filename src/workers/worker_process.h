// A worker's process, and the socket to it.
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
  // Runs `command` (first the program's path). Errors: Failed, with the system's reason.
  static Result<WorkerProcess> start(const std::vector<std::string>& command);
  WorkerProcess(WorkerProcess&& other) noexcept : WorkerProcess() { *this = std::move(other); }
  WorkerProcess& operator=(WorkerProcess&& other) noexcept {
    std::swap(pid_, other.pid_), std::swap(channel, other.channel);
    return *this;
  }
  ~WorkerProcess() { kill(); }

  explicit operator bool() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  // Kills it and waits for its end. Returns how it ended if it had ended before: "ended by signal 11".
  std::string kill();
  // Closes the socket, so that the worker ends; kills it after `milliseconds`.
  void stop(int milliseconds);

  Channel channel;

 private:
  pid_t pid_ = 0;
};

}  // namespace gimbal
