// What a Registry does with backends that fail: every failure leads to the next best device and is reported,
// or, if strict, ends in an error with the same reason.
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "discovery/registry.h"
#include "support/coverage.h"
#include "support/fake_backend.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

using test::PluginFolder;
using namespace std::chrono_literals;

void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' in: " << text;
}

// A registry over one folder of fakes and the CPU.
struct Machine {
  PluginFolder folder;
  BackendPlaces places() const {
    BackendPlaces p;
    p.folders = {folder.path()}, p.cache_file = folder.path() + "/cache/backends.json";
    p.probe = {patience, test::write_coverage};
    return p;
  }
  // Looks into the folder when it is first used.
  Registry& registry() {
    if (!made) made = std::make_unique<Registry>(places());
    return *made;
  }
  std::chrono::milliseconds patience = 120s;
  std::unique_ptr<Registry> made;
};

DeviceRequest wish(const std::string& backend, bool strict = false) {
  DeviceRequest r;
  r.backend = backend, r.strict = strict, r.allow_software = false, r.host_options = "threads=1";
  return r;
}
std::string id(const Result<OpenedDevice>& d) { return d ? d->device->id() : "error: " + d.error().message; }
std::string code(const Result<OpenedDevice>& d, const std::string& what) {
  if (d)
    for (const Rejection& r : d->rejected)
      if (r.what == what) return r.reason;
  return "not rejected";
}
const BackendReport& of(const std::vector<BackendReport>& all, const std::string& name) {
  for (const BackendReport& r : all)
    if (r.backend == name) return r;
  ADD_FAILURE() << name << " is not reported";
  return all[0];
}

TEST(Fallback, TheBestCardIsOpenedAndTheRestHasReasons) {
  Machine m;
  m.folder.put("rocm", "hardware,device=R"), m.folder.put("cuda", "crash"), m.folder.put("vulkan", "");
  auto d = m.registry().open(wish("auto"));
  EXPECT_EQ(id(d), "rocm:0");
  EXPECT_EQ(code(d, "cuda"), "probe-crashed");
  EXPECT_TRUE(d->fallbacks.empty());
  says(d->reason(), {"first available in the automatic order (cuda: it crashed", "SIGSEGV"});
  auto named = m.registry().open(wish("cuda"));
  EXPECT_EQ(id(named), "rocm:0");
  ASSERT_EQ(named->fallbacks.size(), 1u);
  says(named->fallbacks[0].sentence(), {"cuda: it crashed"});
  auto strict = m.registry().open(wish("cuda", true));
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, Code::NoBackend);
  EXPECT_STREQ(strict.error().reason, "probe-crashed");
  says(strict.error().message, {"cuda", "it crashed"});
  EXPECT_EQ(id(m.registry().open(wish("vulkan"))), "rocm:0") << "it is a software device";
  DeviceRequest software = wish("vulkan", true);
  software.allow_software = true;
  EXPECT_EQ(id(m.registry().open(software)), "vulkan:0");
}

TEST(Fallback, WhatWasAskedForAndIsThereNeedsNobodyElse) {
  Machine m;  // with patience of two minutes: this test ends sooner because no probe runs
  m.folder.put("cuda", "hang"), m.folder.put("vulkan", "hardware");
  EXPECT_EQ(id(m.registry().open(wish("cpu"))), "cpu:0");
  EXPECT_EQ(id(m.registry().open(wish("vulkan"))), "vulkan:0");
  DeviceRequest wrong = wish("cpu");
  wrong.index = 3;
  EXPECT_FALSE(m.registry().open(wrong));
  // Nor is one that would come later, once a card of its own is found.
  Machine other;
  other.folder.put("rocm", "hardware"), other.folder.put("opencl", "hang");
  EXPECT_EQ(id(other.registry().open(wish("auto"))), "rocm:0");
  DeviceRequest order = wish("auto");
  order.order = {"cpu"};
  EXPECT_EQ(id(other.registry().open(order)), "cpu:0");
}

TEST(Fallback, AHangIsRememberedHereAndByTheNextProgram) {
  Machine m;
  BackendPlaces hasty = m.places();
  hasty.probe.limit = 300ms;
  m.folder.put("cuda", "hang");
  Registry first(hasty);
  auto d = first.open(wish("auto"));
  EXPECT_EQ(id(d), "cpu:0");
  EXPECT_EQ(code(d, "cuda"), "probe-timeout");
  // It works now. Neither this program nor another one knows.
  PluginFolder::tell("cuda", "hardware");
  EXPECT_EQ(id(first.open(wish("auto"))), "cpu:0");
  d = m.registry().open(wish("auto"));
  EXPECT_EQ(id(d), "cpu:0");
  says(d->reason(), {"did not answer the query", "a moment ago", "not queried again"});
  // Until all are asked anew, or the plugin is another one.
  EXPECT_TRUE(of(m.registry().discover(), "cuda").available);
  EXPECT_EQ(id(m.registry().open(wish("auto"))), "cuda:0");
  EXPECT_EQ(id(Registry(m.places()).open(wish("auto"))), "cuda:0");

  m.folder.put("cuda", "crash");
  EXPECT_EQ(id(Registry(m.places()).open(wish("auto"))), "cpu:0");
  m.folder.put("cuda", "hardware");
  EXPECT_EQ(id(Registry(m.places()).open(wish("auto"))), "cuda:0") << "a new file";
}

TEST(Fallback, TheCacheFileIsReadAsHostileInput) {
  PluginFolder folder;
  const std::string file = folder.path() + "/made/on/demand/cache.txt";
  BackendReport crashed;
  crashed.backend = "cuda", crashed.reason = "probe-crashed", crashed.message = "it\tcrashed\n",
  crashed.remedy = "update";
  RememberedFailures(file).learn(crashed, "key\twith\ttabs");
  auto known = RememberedFailures(file).find("cuda", "key\twith\ttabs");
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->remembered && known->present && !known->available);
  EXPECT_EQ(known->reason, "probe-crashed");
  EXPECT_EQ(known->remedy, "update");
  EXPECT_FALSE(RememberedFailures(file).find("cuda", "another key"));
  EXPECT_FALSE(RememberedFailures(file).find("rocm", "key\twith\ttabs"));
  // What such a file may hold in general: json_cache_test.
  const std::string good = *read_file(file);
  auto holds = [&](const std::string& what, const std::string& instead) {
    std::string text = good;
    text.replace(text.find(what), what.size(), instead);
    std::ofstream(file, std::ios::binary) << text;
    return bool(RememberedFailures(file).find("cuda", "key\twith\ttabs"));
  };
  EXPECT_TRUE(holds("update", "update it"));
  EXPECT_FALSE(holds("probe-crashed", "no-device")) << "this is never kept";
  EXPECT_FALSE(holds("probe-crashed", ""));
  EXPECT_FALSE(holds("\"probe-crashed\"", "7"));
  EXPECT_FALSE(holds("with\\ttabs\"", "\"")) << "another library";
  EXPECT_FALSE(holds("\"when\": ", "\"when\": 9")) << "from the future";
  EXPECT_FALSE(holds("\"when\": ", "\"when\": 1, \"then\": ")) << "a day is long enough to repair a driver";
  const std::pair<int, const char*> kAges[] = {{60, ", a moment ago;"},
                                               {200, ", 3 minutes ago;"},
                                               {7100, ", 118 minutes ago;"},
                                               {7300, ", 2 hours ago;"},
                                               {80000, ", 22 hours ago;"}};
  for (const auto& [seconds, words] : kAges) {
    std::string text = good;
    text.replace(text.find("\"when\": ") + 8, 10, std::to_string(std::time(nullptr) - seconds));
    std::ofstream(file, std::ios::binary) << text;
    const auto r = RememberedFailures(file).find("cuda", "key\twith\ttabs");
    ASSERT_TRUE(r) << text;
    says(r->message, {words, "it was not queried again"});
  }
  // What works is forgotten, and nothing else is ever written.
  std::ofstream(file, std::ios::binary) << good;
  BackendReport fine;
  fine.backend = "rocm";
  RememberedFailures(file).learn(fine, "key");
  EXPECT_EQ(*read_file(file), good);
  fine.backend = "cuda";
  RememberedFailures(file).learn(fine, "key");
  EXPECT_EQ(read_file(file)->find("cuda"), std::string::npos) << *read_file(file);
  // Nowhere to write: remembered all the same.
  RememberedFailures nowhere("/proc/nothing/here");
  nowhere.learn(crashed, "k");
  EXPECT_TRUE(nowhere.find("cuda", "k"));
  EXPECT_NE(library_key("/proc/self/exe", ""), library_key("/etc/passwd", ""));
  EXPECT_EQ(library_key("", "abc"), "#abc");
}

TEST(Fallback, WhatFailedBeforeAndMemory) {
  Machine m;
  m.folder.put("cuda", "hardware,memory=1000,free=500"),
      m.folder.put("vulkan", "hardware,memory=1000,free=900");
  DeviceRequest r = wish("auto");
  std::vector<Unusable> unusable{
      {"cuda:0", "", {Code::Failed, "mat_mul gives 3 in place of 2", "use another driver"}},
      {"vulkan:0", "vulkan.mat_mul.f32", {Code::Failed, "a kernel alone", ""}}};
  auto d = m.registry().open(r, unusable);
  EXPECT_EQ(id(d), "vulkan:0") << (d ? d->reason() : "");
  EXPECT_EQ(code(d, "cuda:0"), "verification-failed");
  says(d->reason(), {"mat_mul gives 3"});
  r.backend = "cuda";
  d = m.registry().open(r, unusable);
  EXPECT_EQ(id(d), "vulkan:0");
  ASSERT_EQ(d->fallbacks.size(), 1u);
  r.strict = true;
  d = m.registry().open(r, unusable);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::NoBackend);
  EXPECT_STREQ(d.error().reason, "verification-failed");
  says(d.error().message, {"mat_mul gives 3"});
  EXPECT_EQ(unusable.size(), 2u);

  r = wish("cuda"), r.bytes = 600;
  d = m.registry().open(r);
  EXPECT_EQ(id(d), "vulkan:0");
  EXPECT_EQ(code(d, "cuda:0"), "not-enough-memory");
  r.bytes = uint64_t(1) << 60;
  d = m.registry().open(r);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::OutOfMemory);
  // The host, too, must give the right numbers.
  std::vector<Unusable> host{{"cpu:0", "", {Code::Failed, "wrong", ""}}, {"vulkan:0", "", {}}};
  d = m.registry().open(wish("cpu"), host);
  EXPECT_EQ(id(d), "cuda:0");
  host.push_back({"cuda:0", "", {Code::DeviceLost, "lost", ""}});
  d = m.registry().open(wish("cpu"), host);
  ASSERT_FALSE(d);
  says(d.error().message, {"wrong"});
}

// A linked backend whose driver opens in a child, but not here.
pid_t this_process = 0;
gimbal_code open_elsewhere(int i, const char* options, gimbal_device** out) {
  test::FakeDevice::settings().open_error = getpid() == this_process ? "the card is gone\nplug it in" : "";
  return test::fake_backend().open(i, options, out);
}
const gimbal_backend* linked_fake() {
  static const gimbal_backend table = [] {
    gimbal_backend t = test::fake_backend();
    t.name = "opencl", t.open = open_elsewhere;
    return t;
  }();
  return &table;
}

TEST(Fallback, ADeviceThatFailsToOpenAndOneThatIsTakenFromUs) {
  this_process = getpid();
  Machine m;
  const gimbal_backend_entry rows[] = {linked_fake, linked_backends()[0], nullptr};
  ASSERT_STREQ(rows[1]()->name, "cpu");
  Registry registry(m.places(), rows);
  std::vector<Unusable> unusable;
  auto d = registry.open(wish("opencl"), unusable);
  EXPECT_EQ(id(d), "cpu:0");
  ASSERT_EQ(unusable.size(), 1u) << "it is not tried again";
  EXPECT_EQ(unusable[0].device, "opencl:0");
  EXPECT_EQ(code(d, "opencl:0"), "open-failed");
  ASSERT_EQ(d->fallbacks.size(), 1u);
  says(d->fallbacks[0].sentence(), {"opencl:0: ", "the card is gone", "(plug it in)"});
  d = registry.open(wish("opencl", true));
  ASSERT_FALSE(d);
  says(d.error().message, {"the card is gone"});
  // Tried here once, it is asked here.
  const auto all = registry.discover();
  EXPECT_EQ(of(all, "opencl").reason, "open-failed");
  EXPECT_EQ(of(all, "opencl").refused.size(), 1u);
  // Without any backend there is a reason for each.
  const gimbal_backend_entry none[] = {nullptr};
  d = Registry({}, none).open(wish("auto"));
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().code, Code::NoBackend);
  says(d.error().message, {"no backend can be used", "cuda", "cpu"});
}

TEST(Fallback, APluginUnderAnothersName) {
  Machine m;
  m.folder.put("cuda", "hardware,named=rocm");
  auto d = m.registry().open(wish("cuda"));
  EXPECT_EQ(id(d), "cpu:0");
  EXPECT_EQ(code(d, "cuda"), "broken-plugin");
  says(d->reason(), {"holds the backend 'rocm'"});
}

TEST(Fallback, FromSeveralThreadsAtOnce) {
  SKIP_WHERE_MALLOC_DOES_NOT_SURVIVE_FORK();
  Machine m;
  int tries = 1;
#ifdef __SANITIZE_THREAD__
  // Some children wait for ever: see SKIP_WHERE_BUSY_THREADS_DO_NOT_SURVIVE_FORK. Then they are asked again.
  m.patience = 10s, tries = 10;
#endif
  m.folder.put("cuda", "hardware"), m.folder.put("vulkan", "crash");
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  m.registry();
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      DeviceRequest any = wish("auto");
      for (int i = 0; i < tries; i++, any.refresh = true)
        if (id(m.registry().open(any)) == "cuda:0" && of(m.registry().discover(), "cuda").available) {
          right++;
          break;
        }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 4);
}

TEST(Fallback, TheRegistryOfTheProcess) {
  Machine m;
  m.folder.put("vulkan",
               "hardware,device=Fake "
               "card,memory=8000000000,free=6000000000,pci=0000:01:00.0,driver=7.1,capability=3.5");
  m.folder.put("cuda", "devices=0,says=no card/buy one"), m.folder.put("toy", "");
  m.folder.put("opencl", "unified,pci=0000:01:00.0");
  use_backends(m.places());
  EXPECT_EQ(backend_names().back(), "toy");
  EXPECT_EQ(discover_backends().size(), std::size(kBackendOrder) + 1);
  auto open = [](const std::string& backend, bool strict = false, uint64_t bytes = 0) {
    DeviceRequest r;
    r.backend = backend, r.strict = strict, r.bytes = bytes, r.allow_software = false;
    return open_device(r);
  };
  EXPECT_EQ(id(open("auto")), "vulkan:0");
  EXPECT_EQ(id(open("cpu")), "cpu:0");
  EXPECT_EQ(id(open("metal")), "vulkan:0");
  EXPECT_FALSE(open("metal", true));
  EXPECT_EQ(id(open("vulkan", false, 7'000'000'000)).substr(0, 4), "cpu:");
  EXPECT_EQ(id(open("auto", false, 5'000'000'000)), "vulkan:0");
  use_backends({});
  EXPECT_EQ(backend_names().size(), std::size(kBackendOrder));
}

}  // namespace
}  // namespace gimbal
