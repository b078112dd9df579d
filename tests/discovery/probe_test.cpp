// Asking backends in child processes: whatever a driver does to its process, an answer comes back, and
// nothing else.
#include "discovery/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/format.h"
#include "device/device.h"
#include "discovery/report.h"
#include "support/coverage.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

using test::PluginFolder;
using namespace std::chrono_literals;

// Long, for a machine may be busy; only what hangs waits for its limit.
const ProbeSettings kPatient{120s, test::write_coverage};

ProbeTask task(const std::string& backend, const std::string& path) {
  return {backend, [path] { return Library::open(path); }, ""};
}
ProbeTask task(const std::string& backend, std::function<void()> first) {
  return {backend,
          [first]() -> Result<LibraryPtr> {
            first();
            return Error{Code::NoBackend, "reached the end", "", "open-failed"};
          },
          ""};
}
BackendReport ask(const ProbeTask& t, const ProbeSettings& s = kPatient) {
  auto answers = probe({t}, s);
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0]);
  // Whatever happened: no process is left.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  return answers[0] ? *answers[0] : BackendReport{};
}
void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' in: " << text;
}

TEST(Probe, EverythingThatADeviceTellsComesThrough) {
  PluginFolder folder;
  const auto path =
      folder.put("cuda",
                 "hardware,unified,devices=2,device=Fake H200,memory=1000,free=600,pci=0000:3B:00.0,"
                 "driver=550.54,capability=9.0");
  const BackendReport r = ask(task("cuda", path));
  EXPECT_TRUE(r.available && r.present);
  EXPECT_EQ(r.reason + r.message, "");
  ASSERT_EQ(r.devices.size(), 2u);
  for (int i = 0; i < 2; i++) {
    const DeviceReport& d = r.devices[size_t(i)];
    EXPECT_EQ(d.index, i);
    EXPECT_EQ(d.id, format("cuda:{}", i));
    EXPECT_EQ(d.name, "Fake H200");
    EXPECT_EQ(d.memory_total, 1000u);
    EXPECT_EQ(d.memory_free, 600u);
    EXPECT_EQ(d.pci_id, "0000:3b:00.0") << "one spelling, so that equal cards are seen to be equal";
    EXPECT_EQ(d.driver, "550.54");
    EXPECT_EQ(d.compute_capability, "9.0");
    EXPECT_TRUE(d.unified_memory);
    EXPECT_FALSE(d.software);
    EXPECT_GT(d.kernels, 0u);
  }
  // The same, asked here.
  const auto here = examine(*Library::open(path));
  EXPECT_EQ(encode(here), encode(r));
}

TEST(Probe, WhatADriverDoesToItsProcessIsAReason) {
  struct Case {
    const char *told, *code;
    std::initializer_list<const char*> words;
  };
  PluginFolder folder;
  for (const Case& c : {Case{"crash", "probe-crashed", {"crashed", "SIGSEGV", "memory error"}},
                        {"abort", "probe-crashed", {"crashed", "SIGABRT"}},
                        {"exit", "probe-crashed", {"ended the process", "exit code 0"}},
                        {"devices=-3", "broken-plugin", {"reports -3 devices"}},
                        {"devices=0,says=the card is asleep/wake it up", "no-device", {"the card is asleep"}},
                        {"devices=0,says=too old/update it/driver-too-old", "driver-too-old", {"too old"}},
                        {"open-fails,says=in use/wait", "open-failed", {"in use"}},
                        {"abi=99", "abi-mismatch", {"99"}},
                        {"null-table", "broken-plugin", {"libgimbal-backend-cuda.so"}}}) {
    SCOPED_TRACE(c.told);
    const BackendReport r = ask(task("cuda", folder.put("cuda", c.told)));
    EXPECT_EQ(r.backend, "cuda");
    EXPECT_FALSE(r.available);
    EXPECT_EQ(r.reason, c.code);
    says(r.message, c.words);
    EXPECT_EQ(r.message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(ask(task("cuda", folder.put("cuda", "devices=0,says=too old/update it/driver-too-old"))).remedy,
            "update it");
  const BackendReport missing = ask(task("cuda", folder.path() + "/nothing.so"));
  EXPECT_EQ(missing.reason, "plugin-missing");
}

TEST(Probe, ADeviceThatOpensAndDoesNotWorkIsRefused) {
  struct Case {
    const char *told, *code;
    std::initializer_list<const char*> words;
  };
  PluginFolder folder;
  const std::string driver = folder.path() + "/libdriver.so.1";
  std::filesystem::copy_file(test::test_plugins() + "/foreign/libgimbal-backend-fake.so", driver);
  const auto put = [&](const std::string& told) { return folder.put("cuda", told + ",loads=" + driver); };
  for (const Case& c :
       {Case{"lost-on=write", "device-lost", {"write failed", "fell off the bus"}},
        {"lost-on=wait", "device-lost", {"computing failed", "fell off the bus"}},
        {"lost-on=read", "device-lost", {"read failed", "fell off the bus"}},
        {"forgets=255", "verification-failed", {"byte 255 of 256 came back as 118; expected 102"}},
        {"memory-for=0", "not-enough-memory", {"256 B", "no memory left"}}}) {
    SCOPED_TRACE(c.told);
    const auto path = put(c.told);
    const BackendReport r = ask(task("cuda", path));
    EXPECT_FALSE(r.available);
    EXPECT_EQ(r.reason, c.code);
    says(r.message, {"opens", "trial of its queue failed", "cuda:0"});
    says(r.message, c.words);
    EXPECT_NE(r.remedy, "");
    ASSERT_EQ(r.refused.size(), 1u);
    EXPECT_EQ(r.refused[0].reason, c.code);
    void* here = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(here);
    EXPECT_TRUE(ask(task("cuda", path)).available) << "its driver runs here, and is not tried in a copy";
    dlclose(here);
  }
  // The other device of the backend is there.
  const BackendReport one = ask(task("cuda", put("devices=2,memory-for=1")));
  EXPECT_TRUE(one.available);
  ASSERT_EQ(one.devices.size(), 1u);
  EXPECT_EQ(one.devices[0].id, "cuda:0");
  ASSERT_EQ(one.refused.size(), 1u);
  EXPECT_EQ(one.refused[0].index, 1);
  ProbeSettings hasty = kPatient;
  hasty.limit = 300ms;
  EXPECT_EQ(ask(task("cuda", put("stuck")), hasty).reason, "probe-timeout");
}

TEST(Probe, AHangEndsAtTheLimit) {
  PluginFolder folder;
  ProbeSettings hasty = kPatient;
  hasty.limit = 200ms;
  const auto begin = std::chrono::steady_clock::now();
  const BackendReport r = ask(task("cuda", folder.put("cuda", "hang")), hasty);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 40s) << "ended long after its limit";
  EXPECT_EQ(r.reason, "probe-timeout");
  says(r.message, {"did not answer the query"});
  EXPECT_FALSE(r.remedy.empty());
  // Deaf to all but SIGKILL, and with its pipe closed.
  const BackendReport deaf = ask(task("x",
                                      [] {
                                        signal(SIGTERM, SIG_IGN);
                                        for (int fd = 3; fd < 64; fd++) close(fd);
                                        for (;;) pause();
                                      }),
                                 hasty);
  EXPECT_EQ(deaf.reason, "probe-timeout");
}

TEST(Probe, AllAreAskedAtOnceAndEachHasItsOwnAnswer) {
  PluginFolder folder;
  const std::string good = folder.put("vulkan", "hardware"), bad = folder.put("opencl", "crash");
  const auto answers =
      probe({task("vulkan", good), task("opencl", bad), task("rocm", folder.path() + "/none")}, kPatient);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(answers[0]->available);
  EXPECT_EQ(answers[1]->reason, "probe-crashed");
  EXPECT_EQ(answers[2]->reason, "plugin-missing");
  EXPECT_TRUE(probe({}, kPatient).empty());
  // At once: each waits for the other, through a file.
  const std::string a = folder.path() + "/a", b = folder.path() + "/b";
  auto meet = [](const std::string& mine, const std::string& other) {
    return [mine, other] {
      close(open(mine.c_str(), O_CREAT | O_WRONLY, 0600));
      while (access(other.c_str(), F_OK) != 0) usleep(1000);
    };
  };
  for (const auto& r : probe({task("a", meet(a, b)), task("b", meet(b, a))}, kPatient))
    EXPECT_EQ(r->reason, "open-failed");
}

TEST(Probe, EnoughIsEnough) {
  PluginFolder folder;
  const std::string good = folder.put("cuda", "hardware"), hangs = folder.put("vulkan", "hang");
  int asked = 0;
  const auto answers =
      probe({task("cuda", good), task("vulkan", hangs)}, kPatient, [&](const ProbeAnswers& a) {
        asked++;
        return a[0] && a[0]->available;
      });
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(answers[0]);
  EXPECT_FALSE(answers[1]);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "the one that hangs was ended";
}

TEST(Probe, ManyDevicesAreCutAndNoneIsAskedTwice) {
  PluginFolder folder;
  const BackendReport r = ask(task("cuda", folder.put("cuda", "devices=100000,hardware")));
  EXPECT_EQ(r.devices.size(), kMaxProbedDevices);
  const BackendReport none = ask(task("cuda", folder.put("cuda", "devices=100000,open-fails,says=no")));
  EXPECT_EQ(none.refused.size(), kMaxProbedDevices);
  EXPECT_EQ(none.reason, "open-failed");
}

bool is_pipe_to_write(int fd) {
  struct stat s;
  return fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
}

// What the child writes in place of a report, into the pipe that it was given: not into one that this process
// had before, from the shell or ctest that started it.
class GivenPipe {
 public:
  GivenPipe() {
    for (int fd = 3; fd < 256; fd++) had_[size_t(fd)] = is_pipe_to_write(fd);
  }
  void write(const std::string& text) const {
    for (int fd = 3; fd < 256; fd++)
      if (!had_[size_t(fd)] && is_pipe_to_write(fd) && ::write(fd, text.data(), text.size()) < 0) _exit(9);
  }

 private:
  std::array<bool, 256> had_{};
};

TEST(Probe, GarbageInThePipe) {
  const GivenPipe pipe;
  BackendReport other;
  other.backend = "somebody else", other.reason = "no-device";
  BackendReport mine = other;
  mine.backend = "x";
  const std::string good = encode(mine);
  for (const std::string& garbage :
       {std::string("hello"), std::string(1 << 15, 'x'), good + "more", encode(other),
        std::string(good.size(), '\0'), std::string("gimbal-report-3\n") + std::string(8, '\xff'),
        std::string("gimbal-report-3\n") + std::string(8, '\0')}) {
    const BackendReport r = ask(task("x", [&] { pipe.write(garbage); }));
    EXPECT_EQ(r.reason, "broken-plugin") << garbage.substr(0, 30);
    says(r.message, {"is malformed"});
  }
  // A half, and then silence or the end.
  const BackendReport half = ask(task("x", [&] {
    pipe.write(good.substr(0, good.size() / 2));
    raise(SIGKILL);
  }));
  EXPECT_EQ(half.reason, "probe-crashed");
  says(half.message, {"SIGKILL"});
  // A whole report stands, whatever happens afterwards.
  const BackendReport whole = ask(task("x", [&] {
    pipe.write(good);
    raise(SIGKILL);
  }));
  EXPECT_EQ(whole.reason, "no-device");
}

TEST(Probe, ExceptionsAndUnknownSignals) {
  const BackendReport r = ask(task("x", [] { throw std::runtime_error("out of luck"); }));
  EXPECT_EQ(r.reason, "open-failed");
  EXPECT_EQ(r.message, "out of luck");
  const BackendReport alarmed = ask(task("x", [] { raise(SIGUSR1); }));
  EXPECT_EQ(alarmed.reason, "probe-crashed");
  says(alarmed.message, {format("signal {}", SIGUSR1).c_str()});
}

TEST(Probe, IsSilentAndReadsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const BackendReport r = ask(task("x", [] {
    char c;
    if (read(0, &c, 1) != 0) _exit(7);
    for (int fd : {1, 2})
      if (write(fd, "driver talks\n", 13) != 13) _exit(8);
    std::printf("buffered\n"), fflush(stdout);
  }));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(r.message, "reached the end");
}

TEST(Probe, WhatAChildStartedEndsWithItAndHoldsNothingUp) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const BackendReport r = ask(task("x", [&] {
    // A daemon of a driver: keeps all files open.
    if (fork() == 0)
      for (;;) pause();
    raise(SIGSEGV);
  }));
  EXPECT_EQ(r.reason, "probe-crashed");
  // A second one that leaves a report and hangs: ended with its group.
  ProbeSettings hasty = kPatient;
  hasty.limit = 200ms;
  ask(task("x",
           [&] {
             if (fork() == 0) {
               if (write(ends[1], "x", 1) != 1) _exit(1);
               for (;;) pause();
             }
             for (;;) pause();
           }),
      hasty);
  close(ends[1]);
  // The other end is closed.
  char c;
  pollfd over{ends[0], POLLIN, 0};
  ssize_t n = 1;
  while (n > 0 && poll(&over, 1, 60000) > 0) n = read(ends[0], &c, 1);
  EXPECT_EQ(n, 0);
  close(ends[0]);
}

// The pipe for the answer may get the numbers of what is closed.
TEST(Probe, WithoutTheStandardStreams) {
  PluginFolder folder;
  const std::string path = folder.put("cuda", "hardware");
  for (const unsigned closed : {1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
    int kept[3] = {};
    for (int fd : {0, 1, 2}) kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    for (int fd : {0, 1, 2})
      if (closed >> fd & 1) close(fd);
    const auto answers = probe({task("cuda", path)}, kPatient);
    for (int fd : {0, 1, 2}) dup2(kept[fd], fd), close(kept[fd]);
    ASSERT_TRUE(answers.at(0));
    EXPECT_TRUE(answers[0]->available) << closed << ": " << answers[0]->message;
  }
}

TEST(Probe, WithoutStdinOrWithChildrenCollectedByTheSystem) {
  PluginFolder folder;
  const std::string path = folder.put("cuda", "hardware"), bad = folder.put("vulkan", "crash");
  const int kept = dup(0);
  close(0);
  EXPECT_TRUE(ask(task("cuda", path)).available);
  dup2(kept, 0), close(kept);
  auto* before = signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(ask(task("cuda", path)).available);
  EXPECT_EQ(ask(task("vulkan", bad)).reason, "probe-crashed");
  signal(SIGCHLD, before);
}

TEST(Probe, NoProcessCanBeStarted) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{3, files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const auto answers = probe({task("x", [] {})}, kPatient);
  setrlimit(RLIMIT_NOFILE, &files);
  ASSERT_TRUE(answers[0]);
  EXPECT_EQ(answers[0]->reason, "open-failed");
  says(answers[0]->message, {"no process could be started"});
}

TEST(Probe, FromAProcessWithBusyThreads) {
  SKIP_WHERE_BUSY_THREADS_DO_NOT_SURVIVE_FORK();
  PluginFolder folder;
  const std::string path = folder.put("cuda", "hardware");
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; t++)
    busy.emplace_back([&] {
      while (!stop) std::vector<std::string>(50, std::string(200, 'x'));
    });
  for (int i = 0; i < 10; i++) {
    const auto answers = probe({task("cuda", path)}, kPatient);
    EXPECT_TRUE(answers[0]->available) << answers[0]->message;
  }
  std::vector<std::thread> askers;
  for (int t = 0; t < 3; t++)
    askers.emplace_back([&] {
      const auto answers = probe({task("cuda", path), task("x", [] { raise(SIGSEGV); })}, kPatient);
      EXPECT_TRUE(answers[0]->available) << answers[0]->message;
      EXPECT_EQ(answers[1]->reason, "probe-crashed");
    });
  for (auto& t : askers) t.join();
  stop = true;
  for (auto& t : busy) t.join();
}

// glibc does not make the loader ready for fork(): without LoaderLock one child in about 20 hangs or fails.
TEST(Probe, FromAProcessWhoseThreadsLoadPlugins) {
  SKIP_WHERE_BUSY_THREADS_DO_NOT_SURVIVE_FORK();
  // Every indirect call that gcov counts looks up a thread-local variable of the plugin, under the loader's
  // own lock and outside of LoaderLock.
  if (test::coverage_measured())
    GTEST_SKIP() << "code that gcov counts takes the loader's lock in every call of a plugin";
  PluginFolder folder;
  const std::string path = folder.put("cuda", "hardware");
  std::atomic<bool> stop{false};
  std::atomic<int> loaded{0};
  std::vector<std::thread> loaders;
  for (int t = 0; t < 2; t++)
    loaders.emplace_back([&] {
      while (!stop) {
        const auto library = Library::open(path);
        if (library && Device::open(*library, 0)) loaded++;
      }
    });
  while (!loaded) std::this_thread::yield();
  for (int i = 0; i < 60; i++) {
    const auto answers = probe({task("cuda", path)}, kPatient);
    EXPECT_TRUE(answers[0]->available) << answers[0]->message;
  }
  stop = true;
  for (auto& t : loaders) t.join();
}

// ---- the report as bytes

BackendReport sample() {
  BackendReport r;
  r.backend = "cuda", r.present = r.available = true;
  DeviceReport d;
  d.index = 1, d.id = "cuda:1", d.name = "a\x1b[31mcard\n", d.memory_total = UINT64_MAX, d.features = "wings";
  r.devices = {d};
  r.refused = {{0, "open-failed", "no", "wait"}};
  r.depends = {"HOME", "/dev/*"};
  return r;
}

TEST(Report, TextsCannotControlATerminalAndUnknownStaysUnknown) {
  const auto r = decode(encode(sample()));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->devices[0].name, "a [31mcard ");
  EXPECT_EQ(r->devices[0].memory_total, UINT64_MAX);
  EXPECT_FALSE(r->devices[0].memory_free);
  EXPECT_EQ(r->refused[0].remedy, "wait");
}

TEST(Report, WhatAnAnswerDependsOnComesWholeOrNotAtAll) {
  auto told = [](std::vector<std::string> depends) {
    BackendReport r = sample();
    r.depends = std::move(depends);
    const auto read = decode(encode(r));
    EXPECT_TRUE(read);
    return read ? read->depends : std::vector<std::string>{"not read"};
  };
  const std::vector<std::string> some{"HOME", "/dev/*", ""}, none;
  EXPECT_EQ(told(some), some);
  EXPECT_EQ(told({"a", "b\tc"}), none) << "it would come as another one";
  EXPECT_EQ(told({"a", std::string(1 << 15, 'x')}), none);
  EXPECT_EQ(told(std::vector<std::string>(kMaxDepends, "a")).size(), kMaxDepends);
  EXPECT_EQ(told(std::vector<std::string>(kMaxDepends + 1, "a")), none);
  EXPECT_EQ(told(std::vector<std::string>(100, std::string(10000, 'x'))), none);
}

TEST(Report, ContradictionsAreRefused) {
  auto refused = [](auto change) {
    BackendReport r = sample();
    change(r);
    return !decode(encode(r));
  };
  EXPECT_FALSE(refused([](BackendReport&) {}));
  EXPECT_TRUE(refused([](BackendReport& r) { r.refused[0].index = 1; })) << "one device twice";
  EXPECT_TRUE(refused([](BackendReport& r) { r.refused[0].index = -1; }));
  EXPECT_TRUE(refused([](BackendReport& r) { r.devices[0].index = -1; }));
  EXPECT_TRUE(refused([](BackendReport& r) { r.devices.push_back(r.devices[0]); }));
  EXPECT_TRUE(refused([](BackendReport& r) { r.reason = "no-device"; }));
  EXPECT_TRUE(refused([](BackendReport& r) { r.devices.clear(); })) << "neither a device nor a reason";
  EXPECT_TRUE(refused([](BackendReport& r) {
    for (int i = 2; i < 300; i++) r.refused.push_back({i, "", "", ""});
  }));
  EXPECT_FALSE(refused([](BackendReport& r) { r.backend.assign(1 << 20, 'x'); })) << "cut, not refused";
}

TEST(Report, EveryCutAndEveryChangedByteIsReadSafely) {
  const std::string whole = encode(sample());
  for (size_t n = 0; n < whole.size(); n++) EXPECT_FALSE(decode(whole.substr(0, n))) << n;
  for (size_t i = 0; i < whole.size(); i++)
    for (int flip : {1, 0x80, 0xff}) {
      std::string bad = whole;
      bad[i] = char(bad[i] ^ flip);
      if (auto r = decode(bad)) { EXPECT_LE(r->devices.size(), kMaxProbedDevices); }
    }
}

}  // namespace
}  // namespace gimbal
