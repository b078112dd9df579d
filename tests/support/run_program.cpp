#include "support/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/send_signal.h"

namespace gimbal::test {
namespace {

constexpr auto kPatience = std::chrono::minutes(2);

[[noreturn]] void cannot(const std::string& what) {
  std::perror(("run_program: " + what).c_str());
  std::exit(1);
}

struct Pipe {
  int read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) cannot("pipe");
    read = ends[0], write = ends[1];
  }
};

void close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// What a child becomes, with all memory that this takes: other threads may hold the allocator's locks when it
// is forked, and would never give them back in the child.
class Command {
 public:
  Command(const std::vector<std::string>& words, const RunSetup& setup)
      : folder_(setup.folder), stdout_path_(setup.stdout_path) {
    if (!setup.limits.empty())
      words_ = {"/bin/sh", "-c", "ulimit " + setup.limits + " && exec \"$0\" \"$@\""};
    words_.insert(words_.end(), words.begin(), words.end());
    for (char** v = environ; *v; v++) {
      const std::string name(*v, strcspn(*v, "="));
      if (!setup.environment.count(name)) environment_.emplace_back(*v);
    }
    for (const auto& [name, value] : setup.environment)
      if (!value.empty()) environment_.push_back(name + "=" + value);
    for (std::string& w : words_) argv_.push_back(w.data());
    for (std::string& v : environment_) envp_.push_back(v.data());
    argv_.push_back(nullptr), envp_.push_back(nullptr);
  }
  Command(const Command&) = delete;

  // In the child.
  [[noreturn]] void become(const Pipe& in, const Pipe& out, const Pipe& err) const {
    if (!folder_.empty() && chdir(folder_.c_str()) != 0) _exit(126);
    int target = out.write;
    if (!stdout_path_.empty()) target = open(stdout_path_.c_str(), O_WRONLY | O_CREAT, 0600);
    if (target < 0 || dup2(in.read, 0) < 0 || dup2(target, 1) < 0 || dup2(err.write, 2) < 0) _exit(126);
    execve(argv_[0], argv_.data(), envp_.data());
    _exit(127);
  }

 private:
  const std::string folder_, stdout_path_;
  std::vector<std::string> words_, environment_;
  std::vector<char*> argv_, envp_;
};

constexpr int kSmallPipe = 4096;
bool is_full(int pipe) {  // a write that does not fit as a whole waits
  int held = 0;
  return ioctl(pipe, FIONREAD, &held) == 0 && held > kSmallPipe - 32;
}

// Whether the process has a handler of its own for Ctrl-C (Linux: the mask SigCgt has bit N-1 for signal N).
bool handles_interrupts(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;)
    if (word == "SigCgt:") {
      unsigned long long mask = 0;
      return (status >> std::hex >> mask) && (mask >> (SIGINT - 1) & 1);
    }
  return false;
}

}  // namespace

Ran run_program(const std::vector<std::string>& command, const RunSetup& setup) {
  signal(SIGPIPE, SIG_IGN);  // a program need not read its stdin
  const Command forked(command, setup);
  Pipe in, out, err;
  const pid_t child = fork();
  if (child < 0) cannot("fork");
  if (child == 0) forked.become(in, out, err);
  close_end(in.read), close_end(out.write), close_end(err.write);

  Ran ran;
  size_t sent = 0;
  bool interrupted = false;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const bool small = setup.interrupt_when_full;
  if (small && fcntl(out.read, F_SETPIPE_SZ, kSmallPipe) != kSmallPipe) cannot("F_SETPIPE_SZ");
  while (out.read >= 0 || err.read >= 0) {
    if (in.write >= 0 && sent == setup.input.size()) close_end(in.write);
    const bool waits = small && !interrupted && err.read >= 0;  // else it has ended
    pollfd wait[3] = {{waits ? -1 : out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    if (poll(wait, 3, waits || setup.interrupt_when_heard ? 10 : 1000) < 0 && errno != EINTR) cannot("poll");
    if (std::chrono::steady_clock::now() > deadline) {
      send_signal(child, SIGKILL);
      errno = ETIMEDOUT;
      cannot(command[0]);
    }
    auto take = [](int& fd, short events, std::string& to) {
      if (fd < 0 || !(events & (POLLIN | POLLHUP | POLLERR))) return;
      char piece[1 << 16];
      const ssize_t n = read(fd, piece, sizeof piece);
      if (n > 0) to.append(piece, size_t(n));
      else if (n == 0 || errno != EINTR) close_end(fd);
    };
    take(out.read, wait[0].revents, ran.out);
    take(err.read, wait[1].revents, ran.err);
    if (in.write >= 0 && (wait[2].revents & (POLLOUT | POLLERR))) {
      const ssize_t n = write(in.write, setup.input.data() + sent, setup.input.size() - sent);
      if (n > 0) sent += size_t(n);
      else if (n < 0 && errno != EINTR) close_end(in.write);
    }
    const int got = int(ran.out.size());
    if (!interrupted && setup.interrupt_after_bytes >= 0 && got >= setup.interrupt_after_bytes)
      interrupted = send_signal(child, SIGINT);
    if (waits && is_full(out.read)) {
      const std::chrono::milliseconds moment(50);  // in which it comes to write more, and to be interrupted
      std::this_thread::sleep_for(moment);
      interrupted = send_signal(child, SIGINT);
      std::this_thread::sleep_for(moment);
    }
    if (!interrupted && setup.interrupt_when_heard && handles_interrupts(child))
      interrupted = send_signal(child, SIGINT);
    if (setup.close_after_bytes >= 0 && got >= setup.close_after_bytes) close_end(out.read);
  }
  close_end(in.write);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) cannot("waitpid");
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

}  // namespace gimbal::test
