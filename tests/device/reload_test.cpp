// A backend is exchanged while others compute on it: they end on the old code, whatever begins gets the new
// one, and what is no good never comes into use.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

#include "conformance/conformance.h"
#include "device/backends.h"
#include "device/reason.h"
#include "files/gguf.h"
#include "runtime/session.h"
#include "support/fake_plugins.h"
#include "support/loaded.h"

namespace gimbal {
namespace {

using test::PluginFolder;

constexpr gimbal_backend_entry kNone[] = {nullptr};

// What programs give reload(): some rows of the new library must give the right numbers.
Status right_numbers(const LibraryPtr& library) {
  auto device = Device::open(library, 0);
  if (!device) return device.error();
  int checked = 0;
  for (size_t i = 0; i < (*device)->kernel_count(); i++) {
    const std::string name = (*device)->kernel(i).name;
    if (!name.ends_with(".add") && !name.ends_with(".rope") && !name.ends_with(".rms_norm")) continue;
    auto report = check_kernel(**device, i);
    if (!report) return report.error();
    if (report->failed) return Error{Code::Failed, name + ": " + report->failures[0], ""};
    checked += report->cases > 0;
  }
  EXPECT_EQ(checked, 3);
  return Done{};
}

TEST(Reload, WhatIsNoGoodNeverComesIntoUse) {
  PluginFolder folder;
  folder.put("engine");
  Backends b({folder.path()}, kNone);
  auto old = b.library("engine");
  ASSERT_TRUE(old) << old.error().message;

  struct Case {
    const char *told, *which, *reason, *word;
  };
  PluginFolder fresh;
  int n = 0;
  for (const Case& c : {Case{"abi=3", "v2", reason::kAbiMismatch, "version 3"},
                        {"without-functions", "v2", reason::kBrokenPlugin, "submit, wait"},
                        {"", "foreign", reason::kSymbolMissing, "gimbal_plugin_entry"},
                        {"", "vendor", reason::kLibraryMissing, "libof-some-vendor.so"},
                        {"open-fails,says=no card", "v2", reason::kOpenFailed, "no card"},
                        {"wrong=rope", "v2", reason::kVerificationFailed, ".rope"},
                        {"lost-at=3", "v2", reason::kVerificationFailed, "fell off the bus"},
                        {"no-memory", "v2", reason::kVerificationFailed, "no memory left"}}) {
    // Another file, which calls itself by the same name.
    const std::string file =
        fresh.put("try" + std::to_string(n++), std::string("named=engine,") + c.told, c.which);
    auto l = b.reload(file, right_numbers);
    ASSERT_FALSE(l) << c.told;
    EXPECT_STREQ(l.error().reason, c.reason) << l.error().message;
    EXPECT_NE(l.error().message.find(c.word), std::string::npos) << l.error().message;
    EXPECT_EQ(*b.library("engine"), *old) << c.told;
    EXPECT_EQ(b.source("engine").path, folder.file("engine"));
  }
  for (int i = 0; i < n; i++) EXPECT_FALSE(test::loaded("try" + std::to_string(i)));
  auto absent = b.reload("/there/is/nothing.so", right_numbers);
  ASSERT_FALSE(absent);
  EXPECT_STREQ(absent.error().reason, reason::kPluginMissing);
}

TEST(Reload, ALinkedBackendAndANewOneCanBeGivenToo) {
  PluginFolder folder;
  Backends b({}, linked_backends());
  const std::string name = b.library("cpu") ? "cpu" : linked_backends()[0]()->name;
  ASSERT_TRUE(b.source(name).linked);
  auto replaced = b.reload(folder.put("other_cpu", "named=" + name), right_numbers);
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_EQ(*b.library(name), replaced->now);
  EXPECT_TRUE(replaced->before.linked);
  EXPECT_FALSE(replaced->draining);
  EXPECT_FALSE(b.source(name).linked);
  EXPECT_EQ(b.source(name).path, folder.file("other_cpu"));
  EXPECT_EQ(b.names().size(), Backends({}, linked_backends()).names().size());

  EXPECT_FALSE(b.source("newcomer").present);
  ASSERT_TRUE(b.reload(folder.put("newcomer"), {}));
  EXPECT_EQ(b.names().back(), "newcomer");
  EXPECT_TRUE(b.library("newcomer"));
}

// A model on a device of its own, as a server opens one for each of its workers.
struct Work {
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;

  static Result<Work> begin(const ModelSource& file, const LibraryPtr& library) {
    Work w;
    auto device = Device::open(library, 0);
    if (!device) return device.error();
    w.device = std::move(*device);
    RunOptions options;
    options.context = 64, options.kernels.allow_fast = true;
    auto plan = make_model_plan(file, *w.device, options);
    if (!plan) return plan.error();
    auto model = Model::load(std::move(*plan), file);
    if (!model) return model.error();
    w.model = std::move(*model);
    auto session = Session::create(*w.model);
    if (!session) return session.error();
    w.session = std::move(*session);
    return w;
  }
  // The likeliest token after `token`.
  Result<int32_t> next(int32_t token) {
    int32_t best = 0;
    auto ok = session->advance(
        std::span(&token, 1), Session::Wanted::Last, [&](size_t, std::span<const float> logits) {
          best = int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
        });
    if (!ok) return ok.error();
    return best;
  }
};

constexpr int kTokens = 8, kThreads = 3;

TEST(Reload, UnderLoadOldWorkEndsOnTheOldCodeAndNewWorkBeginsOnTheNew) {
  const auto file = open_gguf(std::string(GIMBAL_SOURCE_DIR) + "/assets/stories260K.gguf");
  ASSERT_TRUE(file) << file.error().message;
  PluginFolder folder;
  const std::string next_version =
      folder.put("live_next", "named=live", "v2");  // told before any thread runs
  folder.put("live");
  Backends b({folder.path()}, kNone);
  std::vector<int32_t> story;  // what every piece of work must tell
  {
    auto work = Work::begin(*file, *b.library("live"));
    ASSERT_TRUE(work) << work.error().message;
    for (int32_t t = 1; int(story.size()) < kTokens;) {
      auto n = work->next(t);
      ASSERT_TRUE(n) << n.error().message;
      story.push_back(t = *n);
    }
  }

  std::atomic<bool> swapped{false}, stop{false};
  std::atomic<int> on_old{0}, on_new{0}, across{0}, begun_late_on_old{0}, old_at_work{0};
  std::mutex failing;
  std::string failure;
  auto fail = [&](const std::string& why) {
    const std::lock_guard lock(failing);
    failure = why, stop = true;
  };
  auto worker = [&] {
    while (!stop) {
      const bool late = swapped;  // read before the library is asked for
      auto library = b.library("live");
      if (!library) return fail(library.error().message);
      auto work = Work::begin(*file, *library);
      if (!work) return fail(work.error().message);
      *library = nullptr;
      const std::string version = work->device->describe().name;
      const bool old = version == "fake, version 1";
      if (late && old) begun_late_on_old++;
      const bool before = !swapped;
      if (old) old_at_work++;
      std::vector<int32_t> told;
      for (int32_t t = 1; int(told.size()) < kTokens;) {
        auto n = work->next(t);
        if (!n) return fail(n.error().message);
        told.push_back(t = *n);
      }
      if (old) old_at_work--;
      if (told != story) return fail("another story on " + version);
      if (work->device->describe().name != version) return fail("the code changed under its device");
      if (old && before && swapped) across++;
      (old ? on_old : on_new)++;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++) threads.emplace_back(worker);
  // The exchange falls into the midst of work: others tell stories while the new library is checked, and one
  // at least is not at its end when it comes into use.
  while (!stop && (on_old < kThreads || old_at_work == 0)) std::this_thread::yield();
  auto reloaded = b.reload(next_version, right_numbers);
  swapped = true;
  while (!stop && on_new < 2 * kThreads) std::this_thread::yield();
  stop = true;
  for (std::thread& t : threads) t.join();

  EXPECT_EQ(failure, "");
  ASSERT_TRUE(reloaded) << reloaded.error().message;
  EXPECT_EQ(reloaded->now->build_id().substr(0, 6), "fake 2");
  EXPECT_EQ(begun_late_on_old, 0) << "new work begins on the new code";
  EXPECT_GE(on_old, kThreads);
  EXPECT_GE(on_new, 2 * kThreads);
  printf("stories told by version 1: %d, by version 2: %d, by version 1 beyond the exchange: %d\n",
         int(on_old), int(on_new), int(across));
  EXPECT_FALSE(test::loaded("live")) << "the old library is gone with the last of its devices";
  EXPECT_TRUE(test::loaded("live_next"));
}

// The same for sure, without chance: one piece of work is in its midst.
TEST(Reload, AStoryInItsMidstGoesOn) {
  const auto file = open_gguf(std::string(GIMBAL_SOURCE_DIR) + "/assets/stories260K.gguf");
  ASSERT_TRUE(file) << file.error().message;
  PluginFolder folder;
  folder.put("midst"), folder.put("midst_next", "named=midst", "v2");
  Backends b({folder.path()}, kNone);
  auto work = Work::begin(*file, *b.library("midst"));
  ASSERT_TRUE(work) << work.error().message;
  auto first = work->next(1);
  ASSERT_TRUE(first);
  ASSERT_TRUE(b.reload(folder.file("midst_next"), right_numbers));
  EXPECT_TRUE(test::loaded("midst"));
  EXPECT_STREQ(work->device->describe().name, "fake, version 1");
  auto second = work->next(*first);
  ASSERT_TRUE(second) << second.error().message;

  auto fresh = Work::begin(*file, *b.library("midst"));
  ASSERT_TRUE(fresh);
  EXPECT_STREQ(fresh->device->describe().name, "fake, version 2");
  EXPECT_EQ(*fresh->next(1), *first);
  EXPECT_EQ(*fresh->next(*first), *second);
  work = Error{};
  EXPECT_FALSE(test::loaded("midst"));
}

// The plugins that users have, not the fakes. Nothing of one may stay because a thread that used it lives on:
// neither a text for errors, nor anything else with a destructor that the thread would have to call.
TEST(Reload, RealPluginsLeaveWhileTheThreadsThatUsedThemLive) {
  constexpr int kThreads = 3;
  constexpr const char* kPlugins[] = {GIMBAL_REAL_PLUGINS};
  for (const char* path : kPlugins) {
    auto opened = Library::open(path);
    ASSERT_TRUE(opened) << opened.error().message;
    const std::string name = (*opened)->name();
    const bool devices = (*opened)->table().device_count() > 0;
    printf("%s: %s\n", name.c_str(),
           devices ? "computes in three threads" : "has no devices here, and says so");
    std::mutex one_at_a_time;
    std::latch used(kThreads), leave(1);
    auto use = [&](const LibraryPtr& library) {
      const std::lock_guard lock(one_at_a_time);
      EXPECT_FALSE(Device::open(library, 0, "no-such-option=1")) << "for the text of an error";
      if (!devices) return;
      auto device = Device::open(library, 0);
      ASSERT_TRUE(device) << device.error().message;
      for (size_t i = 0; i < (*device)->kernel_count(); i++) {
        if ((*device)->kernel(i).op != uint16_t(OpKind::Add) ||
            ((*device)->kernel(i).needs & ~(*device)->describe().features))
          continue;
        auto report = check_kernel(**device, i);
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_GT(report->cases, 0);
        EXPECT_EQ(report->failed, 0);
        return;
      }
      ADD_FAILURE() << name << " has no kernel for add";
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; i++)
      threads.emplace_back([&, library = *opened]() mutable {
        use(library);
        library.reset();
        used.count_down();
        leave.wait();
      });
    opened = Error{};
    used.wait();
    EXPECT_FALSE(test::loaded(name)) << "a living thread keeps it";
    leave.count_down();
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace
}  // namespace gimbal
