#include "discovery/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/format.h"
#include "base/send_signal.h"
#include "device/loader_lock.h"
#include "device/reason.h"
#include "discovery/depends.h"
#include "discovery/report.h"

namespace gimbal {
namespace {

using Clock = std::chrono::steady_clock;

BackendReport failure(const std::string& backend, const char* reason, std::string message,
                      std::string remedy) {
  BackendReport r;
  r.backend = backend, r.present = true;
  r.reason = reason, r.message = std::move(message), r.remedy = std::move(remedy);
  return r;
}

std::string signal_name(int n) {
  for (auto [number, name] : {std::pair(SIGSEGV, "SIGSEGV, a memory error"),
                              {SIGBUS, "SIGBUS, a memory error"},
                              {SIGABRT, "SIGABRT, an abort"},
                              {SIGILL, "SIGILL, an instruction that this CPU lacks"},
                              {SIGFPE, "SIGFPE, a division by zero"},
                              {SIGKILL, "SIGKILL"},
                              {SIGTRAP, "SIGTRAP"},
                              {SIGSYS, "SIGSYS, a forbidden system call"},
                              {SIGPIPE, "SIGPIPE"},
                              {SIGTERM, "SIGTERM"}})
    if (n == number) return format("signal {}", name);
  return format("signal {}", n);
}

const char kUpdate[] = "update or reinstall the driver";

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the parent no longer waits
    text.remove_prefix(size_t(n));
  }
}

// The child must be invisible and must not outlive its parent: no output, no core file, no signal handler of
// this program.
void become_quiet(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(0);
  setpgid(0, 0);  // so that the driver's child processes are killed with it
  for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (const int null = open("/dev/null", O_RDWR); null >= 0)
    for (int fd : {0, 1, 2}) dup2(null, fd);
}

// Runs in the child. No other program is executed: the child is a copy of this process, has the linked
// backends and needs no second file; exec would also be the external program that users were promised not to
// need. Only this thread exists in the copy, so a lock held by another thread stays locked for ever. Why the
// child waits for none of them:
// * malloc and stdio: glibc takes their locks around fork().
// * The dynamic loader: glibc does not. LoaderLock keeps every dlopen() of gimbal and of the drivers that it
//   opens away from fork().
// * gimbal's own locks: the code here, in examine() and ProbeTask::open takes none but LoaderLock.
// * Libraries that foreign threads load at this moment, and locks of drivers that already run in this
// process: unknown. The time limit turns a hang into a reason, and a backend that runs here is not probed in
// a child (Registry::known).
void answer(const ProbeTask& task, int fd, const ProbeSettings& settings) {
  BackendReport report;
  try {
    const std::vector<std::string> before = mapped_libraries();
    std::vector<std::string> loaded;
    auto library = task.open();
    report = library ? examine(*library, task.options, &loaded, &before)
                     : failure(task.backend, library.error().reason, library.error().message,
                               library.error().remedy);
    const auto depends_on = library ? (*library)->table().depends_on : nullptr;
    if (const char* lines = depends_on ? depends_on() : nullptr)
      report.depends = all_depends(lines, before, std::move(loaded));
    if (report.reason.empty() && !report.available) report.reason = reason::kBrokenPlugin;
  } catch (const std::exception& e) { report = failure(task.backend, reason::kOpenFailed, e.what(), ""); }
  write_all(fd, encode(report));
  if (settings.before_exit) settings.before_exit();
}

class Child {
 public:
  Child(const ProbeTask& task, const ProbeSettings& settings) : task_(task) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      errno_ = errno;
      return;
    }
    const pid_t parent = getpid();
    pid_ = LoaderLock::fork();
    deadline_ = Clock::now() + settings.limit;
    if (pid_ == 0) {
      // If this program runs without stdin or stdout, the pipe may get their number.
      const int to = ends[1] > 2 ? ends[1] : fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
      close(ends[0]);
      become_quiet(parent);
      answer(task, to, settings);
      _exit(0);
    }
    errno_ = errno;
    close(ends[1]);
    fd_ = ends[0];
  }
  ~Child() {
    end();
    if (fd_ >= 0) close(fd_);
  }
  Child(const Child&) = delete;

  pollfd readable() const { return {over_ ? -1 : fd_, POLLIN, 0}; }
  // The longest wait until the next call of step(). A pipe without a writer, or one held by a grandchild,
  // signals nothing.
  int patience() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    return int(std::clamp<long long>(left + 1, 0, over_ ? 2 : 50));
  }

  // Reads available data; returns the report once the outcome is known.
  std::optional<BackendReport> step(bool something_to_read) {
    if (pid_ < 0)
      return failure(task_.backend, reason::kOpenFailed,
                     format("no process could be started to probe it: {}", std::strerror(errno_)), "");
    const bool gone = reap();  // before reading: all its output is available then
    if (!over_ && (something_to_read || gone)) receive(gone);
    if (garbage_)
      return answered(failure(task_.backend, reason::kBrokenPlugin,
                              "its answer to the query for devices is malformed", kUpdate));
    const bool late = Clock::now() >= deadline_;
    if (report_ && (gone || late)) return answered(std::move(*report_));
    if (gone) return answered(failure(task_.backend, reason::kProbeCrashed, how_it_ended(), kUpdate));
    if (late)
      return answered(failure(task_.backend, reason::kProbeTimeout,
                              "it did not answer the query for devices in time, and was stopped", kUpdate));
    return std::nullopt;
  }

 private:
  BackendReport answered(BackendReport r) {
    end();
    return r;
  }

  // Whether the child has ended. Kills its process group while its id is still reserved.
  bool reap() {
    if (reaped_) return true;
    siginfo_t ended{};
    const int found = waitid(P_PID, id_t(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
    // If the program lets the system reap children, their exit status is unknown.
    if (found < 0) return reaped_ = errno == ECHILD;
    if (ended.si_pid != pid_) return false;
    send_signal_to_group(pid_, SIGKILL);
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) continue;
    return reaped_ = true;
  }

  void receive(bool all) {
    char piece[1 << 14];
    pollfd more{fd_, POLLIN, 0};
    do {
      const ssize_t n = read(fd_, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        over_ = true;
        return;
      }
      received_.append(piece, size_t(n));
      const auto bytes = message_bytes(received_);
      garbage_ = !bytes || (*bytes && received_.size() > *bytes);
      if (!garbage_ && *bytes && received_.size() == *bytes) {
        report_ = decode(received_);
        garbage_ = !report_ || report_->backend != task_.backend;
        over_ = true;
      }
    } while (all && !over_ && !garbage_ && poll(&more, 1, 0) > 0);
  }

  std::string how_it_ended() const {
    if (WIFSIGNALED(status_))
      return format("it crashed during the query for devices ({})", signal_name(WTERMSIG(status_)));
    return format("it ended the process during the query for devices (exit code {})", WEXITSTATUS(status_));
  }

  // A process inside a broken driver may survive even SIGKILL for a while; do not wait longer than a moment.
  void end() {
    if (pid_ < 0 || reaped_) return;
    send_signal_to_group(pid_, SIGKILL), send_signal(pid_, SIGKILL);
    for (int i = 0; i < 200 && !reap(); i++) usleep(1000);
  }

  const ProbeTask& task_;
  Clock::time_point deadline_;
  pid_t pid_ = -1;
  int fd_ = -1, status_ = 0, errno_ = 0;
  bool over_ = false, garbage_ = false, reaped_ = false;
  std::string received_;
  std::optional<BackendReport> report_;
};

}  // namespace

ProbeAnswers probe(const std::vector<ProbeTask>& tasks, const ProbeSettings& settings,
                   const std::function<bool(const ProbeAnswers&)>& enough) {
  ProbeAnswers answers(tasks.size());
  std::vector<std::unique_ptr<Child>> children;
  for (const ProbeTask& task : tasks) children.push_back(std::make_unique<Child>(task, settings));
  for (;;) {
    std::vector<pollfd> wait;
    std::vector<size_t> of;
    int patience = 50;
    for (size_t i = 0; i < tasks.size(); i++)
      if (!answers[i])
        wait.push_back(children[i]->readable()), of.push_back(i),
            patience = std::min(patience, children[i]->patience());
    if (wait.empty()) return answers;
    if (poll(wait.data(), wait.size(), patience) < 0)
      for (pollfd& w : wait) w.revents = 0;  // interrupted by a signal; the next round polls again
    bool news = false;
    for (size_t k = 0; k < of.size(); k++)
      if ((answers[of[k]] = children[of[k]]->step(wait[k].revents != 0))) news = true;
    if (news && enough && enough(answers)) return answers;
  }
}

}  // namespace gimbal
