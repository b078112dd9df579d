// A worker's process, and the socket to it.
#pragma once
#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "workers/channel.h"

namespace gimbal {

// In the child the socket is descriptor 3.
inline constexpr int kWorkerSocket = 3;
// With wire::Load::stores_pages: the sockets of a PageClient, for reading and for writing.
inline constexpr int kPageSockets[] = {kWorkerSocket + 1, kWorkerSocket + 2};

class WorkerProcess {
 public:
  WorkerProcess() = default;  // none
  // Runs `command` (first the program's path). `files`: descriptors that it gets, too, from kWorkerSocket + 1
  // on; the caller closes its own. Errors: Failed, with the system's reason.
  static Result<WorkerProcess> start(const std::vector<std::string>& command, std::span<const int> files) {
    return start_with_errors(command, -1, files);
  }
  // The same; its stderr is this descriptor. -1: that of this process.
  static Result<WorkerProcess> start_with_errors(const std::vector<std::string>& command, int errors,
                                                 std::span<const int> files = {});
  // A worker that is not a process of this system, for a simulator. Closes `socket`; `end` ends the worker
  // and returns how it ended if it had ended before, as kill() does.
  WorkerProcess(int socket, pid_t pid, std::function<std::string()> end)
      : channel(socket), pid_(pid), end_(std::move(end)) {}
  WorkerProcess(WorkerProcess&& other) noexcept : WorkerProcess() { *this = std::move(other); }
  WorkerProcess& operator=(WorkerProcess&& other) noexcept {
    std::swap(pid_, other.pid_), std::swap(channel, other.channel), std::swap(end_, other.end_);
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
  std::function<std::string()> end_;  // empty: `pid_` is a child of this process
};

}  // namespace gimbal
