#include "workers/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/send_signal.h"

extern char** environ;

namespace gimbal {
namespace {

Error failed(const std::string& program, int problem) {
  return {Code::Failed,
          format("the worker process {} cannot be started: {}", program, std::strerror(problem)), ""};
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return format("ended by signal {}", WTERMSIG(status));
  return format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start_with_errors(const std::vector<std::string>& command, int errors,
                                                       std::span<const int> files) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed(command[0], errno);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  // The front blocks and ignores some signals; a worker starts with the defaults of a program. Its standard
  // input would be the terminal of the front.
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions), posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  // A descriptor with one of the right numbers would keep its close-on-exec flag, or be overwritten by
  // another one: copies with higher numbers are passed on.
  const int behind = kWorkerSocket + 1 + int(files.size());
  std::vector<int> theirs = {fcntl(ends[1], F_DUPFD_CLOEXEC, behind)};
  close(ends[1]);
  for (const int file : files) theirs.push_back(fcntl(file, F_DUPFD_CLOEXEC, behind));
  if (errors >= 0) posix_spawn_file_actions_adddup2(&actions, errors, 2);
  for (size_t i = 0; i < theirs.size(); i++)
    posix_spawn_file_actions_adddup2(&actions, theirs[i], kWorkerSocket + int(i));
  // Not the connections of clients, which would stay open with the worker.
  posix_spawn_file_actions_addclosefrom_np(&actions, behind);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A group of its own: Ctrl-C in a terminal reaches only the front, which drains.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  WorkerProcess out;
  const int problem =
      posix_spawn(&out.pid_, command[0].c_str(), &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions), posix_spawnattr_destroy(&attributes);
  for (const int one : theirs)
    if (one >= 0) close(one);
  out.channel = Channel(ends[0]);
  if (problem == 0) return out;
  out.pid_ = 0;
  return failed(command[0], problem);
}

std::string WorkerProcess::kill() {
  if (pid_ <= 0) return "";
  if (end_) {
    pid_ = 0;
    channel = Channel();
    return std::exchange(end_, nullptr)();
  }
  // A process that has ended already keeps its own status.
  send_signal(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
  pid_ = 0;
  channel = Channel();
  return ending(status);
}

void WorkerProcess::stop(int milliseconds) {
  if (pid_ <= 0) return;
  if (end_) {
    kill();
    return;
  }
  shutdown(channel.fd(), SHUT_WR);
  for (int waited = 0; waited < milliseconds; waited += 5) {
    int status = 0;
    if (const pid_t ended = waitpid(pid_, &status, WNOHANG);
        ended == pid_ || (ended < 0 && errno == ECHILD)) {
      pid_ = 0;
      channel = Channel();
      return;
    }
    // Its last messages must not fill the socket, or it could not end.
    if (pollfd p{channel.fd(), POLLIN, 0}; poll(&p, 1, 5) > 0 && !channel.fill()) poll(nullptr, 0, 5);
    for (std::string_view line; channel.next(line);) {}
  }
  kill();
}

}  // namespace gimbal
