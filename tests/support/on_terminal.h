// Runs the program on a terminal of its own and types into it.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/send_signal.h"
#include "support/cli.h"

namespace gimbal::test {

struct Seen {
  std::string text;  // what arrived at the terminal
  int code = -1;     // exit code; 128 + the signal's number when a signal ended it
};

// What is typed once `after` was seen, behind what was seen before.
struct Typed {
  std::string after, keys;
};

// Why no pseudo-terminal can be had; empty where one can.
inline std::string terminal_problem() {
  int master = -1, slave = -1;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0)
    return std::string("no pseudo-terminal can be had here (") + std::strerror(errno) +
           "); as root: mount -t devpts devpts /dev/pts";
  close(master), close(slave);
  return "";
}
// The first line of every test that runs a program on a terminal.
#define NEEDS_A_TERMINAL() \
  if (const std::string why = terminal_problem(); !why.empty()) GTEST_SKIP() << why

// Ends the program when nothing arrives for two minutes.
inline Seen on_terminal(Args args, const std::vector<Typed>& script = {}) {
  Seen seen;
  const char* program = std::getenv("GIMBAL");
  if (!program) {
    ADD_FAILURE() << "the environment variable GIMBAL must name the program (ctest sets it)";
    return seen;
  }
  std::vector<char*> argv{const_cast<char*>(program)};
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  winsize size{50, 200, 0, 0};
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    for (const auto& [name, value] : quiet_home())
      if (value.empty()) unsetenv(name.c_str());
      else setenv(name.c_str(), value.c_str(), 1);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    execv(program, argv.data());
    _exit(127);
  }
  if (child < 0) {
    ADD_FAILURE() << "the program cannot be started on a terminal: " << std::strerror(errno);
    return seen;
  }
  size_t typed = 0, from = 0;
  char piece[4096];
  bool ended = false;
  for (pollfd p{terminal, POLLIN, 0}; poll(&p, 1, 120000) > 0;) {
    const ssize_t n = read(terminal, piece, sizeof piece);
    if (n <= 0) {
      ended = true;
      break;
    }
    seen.text.append(piece, size_t(n));
    for (size_t at;
         typed < script.size() && (at = seen.text.find(script[typed].after, from)) != std::string::npos;) {
      from = at + script[typed].after.size();
      const std::string& keys = script[typed++].keys;
      EXPECT_EQ(write(terminal, keys.data(), keys.size()), ssize_t(keys.size()));
    }
  }
  EXPECT_EQ(typed, script.size()) << "never seen: '" << (typed < script.size() ? script[typed].after : "")
                                  << "' in\n"
                                  << seen.text;
  if (!ended) send_signal(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  seen.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return seen;
}

}  // namespace gimbal::test
