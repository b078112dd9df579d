#include "workers/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#ifdef __linux__
#include <linux/landlock.h>
#include <sys/syscall.h>
#endif

namespace gimbal {
namespace {

struct Act {
  const char* name;
  bool (*succeeds)();
};

bool opens(const char* path, int flags) {
  const int file = open(path, flags | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

// None of them changes anything where it succeeds. A call that the sandbox forbids fails with EPERM; outside,
// a path that cannot be used gives another error.
constexpr Act kActs[] = {
    {"read files", [] { return opens("/", O_RDONLY); }},
    {"create files", [] { return open("/dev/null/x", O_CREAT | O_WRONLY, 0600) < 0 && errno == ENOTDIR; }},
    {"delete files", [] { return unlink("/dev/null/x") < 0 && errno == ENOTDIR; }},
    {"open connections",
     [] {
       const int s = socket(AF_INET, SOCK_STREAM, 0);
       if (s >= 0) close(s);
       return s >= 0;
     }},
    {"start programs",
     [] {
       char* const none[] = {nullptr};
       return execve("/dev/null/x", none, none) < 0 && errno == ENOTDIR;
     }},
    {"signal other processes", [] { return kill(getppid(), 0) == 0; }},
};

int landlock_version() {
#ifdef __linux__
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? int(version) : 0;
#else
  return 0;
#endif
}

// One line for each fact: a letter and a text.
std::string tried() {
  const Sandbox s = enter_sandbox();
  std::string out;
  for (const std::string& text : s.in_force) out += "i" + text + "\n";
  for (const std::string& text : s.missing) out += "m" + text + "\n";
  for (const Act& act : kActs) out += format("{}{}\n", act.succeeds() ? "p" : "f", act.name);
  return out;
}

std::string read_all(int from) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(from, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.append(buffer, size_t(n));
  }
  return text;
}

}  // namespace

SandboxTrial try_sandbox() {
  SandboxTrial trial;
  trial.landlock = landlock_version();
  const auto none = [&](const char* what) {
    trial.sandbox.missing.push_back(format("{}: {}", what, std::strerror(errno)));
    return trial;
  };
  int ends[2];
  if (pipe(ends) != 0) return none("no trial");
  const pid_t child = fork();
  if (child < 0) {
    const int problem = errno;
    close(ends[0]), close(ends[1]);
    errno = problem;
    return none("no trial");
  }
  if (child == 0) {
    close(ends[0]);
    const std::string text = tried();
    _exit(write(ends[1], text.data(), text.size()) == ssize_t(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    if (line.empty()) continue;
    auto& list = line[0] == 'i'   ? trial.sandbox.in_force
                 : line[0] == 'm' ? trial.sandbox.missing
                 : line[0] == 'f' ? trial.forbidden
                                  : trial.possible;
    list.push_back(line.substr(1));
  }
  if (status != 0) trial.sandbox.missing.push_back("the trial's process ended early");
  return trial;
}

}  // namespace gimbal
