// In the sandbox a process can compute and speak on what is open, and nothing else. Each try runs in a child
// of its own, because there is no way back.
#include "workers/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <thread>

namespace gimbal {
namespace {

// The exit code of a child that does this in the sandbox; 100 where the kernel has no seccomp.
int in_sandbox(const std::function<int()>& act) {
  const pid_t pid = fork();
  if (pid == 0) {
    const Sandbox s = enter_sandbox();
    for (const std::string& m : s.missing)
      if (m.find("seccomp") == 0) _exit(100);
    if (s.missing.size() + s.in_force.size() != 3) _exit(101);
    _exit(act());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

class SandboxOfAProcess : public testing::Test {
 protected:
  void SetUp() override {
    if (in_sandbox([] { return 0; }) == 100)
      GTEST_SKIP() << "there is no seccomp for a process like this one";
  }
};

TEST_F(SandboxOfAProcess, RefusesFilesConnectionsAndPrograms) {
  EXPECT_EQ(in_sandbox([] { return open("/etc/passwd", O_RDONLY) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(in_sandbox([] { return open("/tmp/gimbal-sandbox-test", O_CREAT | O_WRONLY, 0600) < 0 ? 0 : 1; }),
            0);
  EXPECT_EQ(in_sandbox([] { return unlink("/tmp/gimbal-sandbox-test") < 0 && errno == EPERM ? 0 : 1; }), 0);
  EXPECT_EQ(in_sandbox([] { return socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(in_sandbox([] { return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(in_sandbox([] { return execl("/bin/true", "true", nullptr) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(in_sandbox([] { return kill(getppid(), 0) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(in_sandbox([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) < 0 ? 0 : 1; }), 0);
}

// What `gimbal doctor` prints.
TEST_F(SandboxOfAProcess, TriedItForbidsAllActs) {
  const SandboxTrial trial = try_sandbox();
  EXPECT_EQ(trial.forbidden,
            (std::vector<std::string>{"read files", "create files", "delete files", "open connections",
                                      "start programs", "signal other processes"}));
  EXPECT_EQ(trial.possible, std::vector<std::string>{});
  EXPECT_EQ(trial.sandbox.in_force.size() + trial.sandbox.missing.size(), 3u);
  const auto& force = trial.sandbox.in_force;
  EXPECT_EQ(trial.landlock > 0, std::count(force.begin(), force.end(), "no files (Landlock)") > 0);
  // This process is outside.
  const int file = open("/", O_RDONLY);
  EXPECT_GE(file, 0);
  close(file);
}

#ifdef SYS_arch_prctl
// Packaged releases of llama.cpp end without the first on a CPU with AMX.
TEST_F(SandboxOfAProcess, LetsItAskForTileRegistersAlone) {
  EXPECT_EQ(in_sandbox([] {
              unsigned long granted = 0;
              return syscall(SYS_arch_prctl, 0x1022, &granted) == 0 || errno != EPERM ? 0 : 1;
            }),
            0);
  EXPECT_EQ(in_sandbox([] { return syscall(SYS_arch_prctl, 0x1023, 18) == 0 || errno != EPERM ? 0 : 1; }), 0);
  for (int other : {0x1001, 0x1003, 0x1011, 0x1012, 0x1020, 0x1024, 0x2001})
    EXPECT_EQ(in_sandbox([&] {
                unsigned long value = 0;
                return syscall(SYS_arch_prctl, other, &value) < 0 && errno == EPERM ? 0 : 1;
              }),
              0)
        << other;
}
#endif

TEST_F(SandboxOfAProcess, LetsItComputeAndSpeak) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(in_sandbox([&] {
              std::vector<char> large(size_t(64) << 20, 1);
              int sum = 0;
              std::thread([&] { sum = large[1000] + large[large.size() - 1]; }).join();
              return send(ends[1], "x", 1, 0) == 1 ? sum : 1;
            }),
            2);
  char x = 0;
  EXPECT_EQ(recv(ends[0], &x, 1, MSG_DONTWAIT), 1);
  close(ends[0]), close(ends[1]);
}

}  // namespace
}  // namespace gimbal
