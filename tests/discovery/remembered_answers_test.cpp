// Which answers of backends are believed without asking, what ends that, and what users are told: a fake
// counts how often it was asked.
#include "discovery/remembered_answers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "device/reason.h"
#include "discovery/depends.h"
#include "discovery/registry.h"
#include "support/coverage.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

using test::PluginFolder;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

void says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' in: " << text;
}
void write(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

const std::string kSoftware = "device=Slowpipe";
const std::string kMissing = "devices=0,says=libreal.so.1 is not there/install it/library-missing";

// A folder with the plugin of a fake "vulkan" beside the CPU, and a folder with its driver's manifests.
class RememberedAnswersTest : public testing::Test {
 protected:
  RememberedAnswersTest() {
    fs::create_directories(drivers_);
    write(manifest_, "{}");
    write(single_, "one");
  }

  BackendPlaces places() const {
    BackendPlaces p;
    p.folders = {folder_.path()}, p.answers_file = file_;
    p.probe = {120s, test::write_coverage};
    return p;
  }
  std::string settings(const std::string& told) const {
    return told + ",note=" + note_ + ",depends=" + depends_;
  }
  void put(const std::string& told) {
    folder_.put("vulkan", settings(told));
    settle();
  }
  // What changed just now may have changed too late for an answer, which is not kept then.
  static void settle() { std::this_thread::sleep_for(30ms); }
  // What the driver would say from now on; the plugin's file stays.
  void tell(const std::string& told) const { PluginFolder::tell("vulkan", settings(told)); }

  static DeviceRequest automatic() {
    DeviceRequest r;
    r.allow_software = false, r.host_options = "threads=1";
    return r;
  }
  // As another program would.
  Result<OpenedDevice> open(const DeviceRequest& r = automatic()) const { return Registry(places()).open(r); }
  std::string id(const DeviceRequest& r = automatic()) const {
    auto d = open(r);
    return d ? d->device->id() : "error: " + d.error().message;
  }
  size_t asked() const {
    std::error_code e;
    const auto n = fs::file_size(note_, e);
    return e ? 0 : size_t(n);
  }
  size_t asked_by(const DeviceRequest& r) const {
    const size_t before = asked();
    (void)open(r);
    return asked() - before;
  }
  // The answer is known; then `change` makes it doubtful, once.
  template <class F>
  void is_asked_after(const char* what, F change) {
    SCOPED_TRACE(what);
    (void)open();
    EXPECT_EQ(asked_by(automatic()), 0u) << "known";
    change();
    settle();
    EXPECT_EQ(asked_by(automatic()), 1u) << "changed";
    EXPECT_EQ(asked_by(automatic()), 0u) << "known again";
  }

  PluginFolder folder_;
  const std::string file_ = folder_.path() + "/cache/answers.json", note_ = folder_.path() + "/asked",
                    drivers_ = folder_.path() + "/icd.d", manifest_ = drivers_ + "/slow.json",
                    single_ = folder_.path() + "/node";
  std::string depends_ = "GIMBAL_TEST_ONE|GIMBAL_TEST_ALL_*|" + drivers_ + "/*.json|" + single_;
};

TEST_F(RememberedAnswersTest, ASoftwareDeviceIsAskedForOnceAndTheReasonSaysSo) {
  put(kSoftware);
  auto d = open();
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->device->id(), "cpu:0");
  EXPECT_EQ(asked(), 1u);
  says(d->reason(), {"Slowpipe emulates a GPU on the CPU"});
  EXPECT_EQ(d->reason().find("seen"), std::string::npos) << d->reason();

  tell("hardware");  // unknown
  d = open();
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->device->id(), "cpu:0");
  EXPECT_EQ(asked(), 1u);
  ASSERT_FALSE(d->rejected.empty());
  const auto vulkan = std::find_if(d->rejected.begin(), d->rejected.end(),
                                   [](const Rejection& r) { return r.what == "vulkan:0"; });
  ASSERT_NE(vulkan, d->rejected.end());
  EXPECT_EQ(vulkan->reason, "software-device");
  const time_t now = std::time(nullptr);
  char today[16];
  std::strftime(today, sizeof today, "%Y-%m-%d ", std::gmtime(&now));
  says(vulkan->message, {"Slowpipe emulates a GPU on the CPU, seen on 20", " UTC"});
  if (now % 86400 > 60) says(vulkan->message, {today});
  says(vulkan->remedy, {"'allow_software_devices'"});
  EXPECT_FALSE(vulkan->seen.empty()) << "so that a front end can say how to look again";
  says(d->reason(), {"seen on"});

  // Listing all of them probes, and later calls use its results.
  Registry(places()).discover();
  EXPECT_EQ(asked(), 2u);
  EXPECT_EQ(id(), "vulkan:0");
  EXPECT_EQ(asked_by(automatic()), 1u) << "a real device is looked at each time";
}

TEST_F(RememberedAnswersTest, AMissingDriverLikewise) {
  put(kMissing);
  EXPECT_EQ(id(), "cpu:0");
  tell("hardware");
  auto d = open();
  ASSERT_TRUE(d);
  EXPECT_EQ(d->device->id(), "cpu:0");
  EXPECT_EQ(asked(), 1u);
  says(d->reason(), {"vulkan: ", "libreal.so.1 is not there, seen on 20", "(install it)"});
}

TEST_F(RememberedAnswersTest, WhoeverAsksForMoreThanAutomaticChoiceIsAnsweredByTheDriver) {
  put(kSoftware);
  EXPECT_EQ(asked_by(automatic()), 1u);
  EXPECT_EQ(asked_by(automatic()), 0u);
  DeviceRequest named = automatic(), strict = named, numbered = named, software = named, again = named,
                elsewhere = named, order = named;
  named.backend = "vulkan", elsewhere.backend = "cuda", order.order = {"vulkan"};
  strict.strict = true, numbered.index = 0, software.allow_software = true, again.refresh = true;
  EXPECT_EQ(asked_by(named), 1u);
  EXPECT_EQ(asked_by(strict), 1u);
  EXPECT_EQ(asked_by(numbered), 1u);
  EXPECT_EQ(asked_by(software), 1u);
  EXPECT_EQ(asked_by(again), 1u);
  EXPECT_EQ(asked_by(elsewhere), 1u) << "the next best for something that was asked for";
  EXPECT_EQ(asked_by(order), 0u) << "still automatic";
  strict.backend = "vulkan";
  EXPECT_EQ(asked_by(strict), 1u);
  tell("hardware");
  EXPECT_EQ(id(strict), "vulkan:0");
  EXPECT_EQ(id(), "vulkan:0") << "what they found is known to all";
}

TEST_F(RememberedAnswersTest, EverythingThatDecidesTheAnswerEndsIt) {
  for (const std::string& told : {kSoftware, kMissing}) {
    put(told);
    is_asked_after("the plugin", [&] { put(told); });
    is_asked_after("a variable", [] { setenv("GIMBAL_TEST_ONE", "1", 1); });
    is_asked_after("its value", [] { setenv("GIMBAL_TEST_ONE", "2", 1); });
    is_asked_after("an empty value", [] { setenv("GIMBAL_TEST_ONE", "", 1); });
    is_asked_after("no value", [] { unsetenv("GIMBAL_TEST_ONE"); });
    is_asked_after("one of several", [] { setenv("GIMBAL_TEST_ALL_THERE_ARE", "1", 1); });
    is_asked_after("none of them", [] { unsetenv("GIMBAL_TEST_ALL_THERE_ARE"); });
    is_asked_after("another manifest", [&] { write(drivers_ + "/real.json", "{}"); });
    is_asked_after("one of another name", [&] { fs::rename(drivers_ + "/real.json", drivers_ + "/b.json"); });
    is_asked_after("it is gone", [&] { fs::remove(drivers_ + "/b.json"); });
    is_asked_after("what is in one", [&] { write(manifest_, "[]"); });
    is_asked_after("who may read it", [&] { chmod(manifest_.c_str(), 0600); });
    is_asked_after("the folder", [&] { fs::rename(drivers_, drivers_ + ".not"); });
    is_asked_after("it is back", [&] { fs::rename(drivers_ + ".not", drivers_); });
    is_asked_after("a file", [&] { write(single_, "two"); });
    is_asked_after("it is gone", [&] { fs::remove(single_); });
    is_asked_after("it is back", [&] { write(single_, "two"); });
    is_asked_after("where the loader looks", [&] { setenv("LD_LIBRARY_PATH", drivers_.c_str(), 1); });
    is_asked_after("what is there", [&] { write(drivers_ + "/libreal.so.1", ""); });
    is_asked_after("the usual places", [&] {
      fs::remove(drivers_ + "/libreal.so.1");
      unsetenv("LD_LIBRARY_PATH");
    });
  }
  EXPECT_EQ(asked_by(automatic()), 0u);
  write(drivers_ + "/readme.txt", "no manifest");
  setenv("GIMBAL_TEST_ANOTHER", "1", 1);
  EXPECT_EQ(asked_by(automatic()), 0u) << "a backend that was not named";
}

TEST_F(RememberedAnswersTest, ALibraryThatWasLoadedForItEndsItToo) {
  const std::string lib = folder_.path() + "/lib", library = lib + "/libslow.so.1";
  fs::create_directories(lib);
  const std::string from = test::test_plugins() + "/foreign/libgimbal-backend-fake.so";
  fs::copy_file(from, library);
  for (const char* how : {",loads=", ",borrows="}) {
    put(kSoftware + how + library);
    (void)open();
    says(*read_file(file_), {library.c_str()});
    is_asked_after("overwritten in its place",
                   [&] { fs::copy_file(from, library, fs::copy_options::overwrite_existing); });
    is_asked_after("another one beside it", [&] { write(lib + "/libslow-devices.so" + how, ""); });
  }
}

TEST_F(RememberedAnswersTest, NothingElseIsKept) {
  const std::string none = "devices=0,says=", refused = "open-fails,says=in use/wait";
  for (const std::string& told : {std::string("hardware"), std::string("hardware,devices=2"),
                                  none + "asleep/wake it up", none + "too old/update it/driver-too-old",
                                  refused, refused + "/library-missing", std::string("crash")}) {
    SCOPED_TRACE(told);
    put(told);
    (void)open();
    const size_t before = asked();
    (void)open();
    if (told != "crash") { EXPECT_EQ(asked(), before + 1); }
    EXPECT_FALSE(fs::exists(file_)) << *read_file(file_);
  }
  // A plugin that does not say what it depends on, as those of before.
  for (const char* told : {"", ",older"}) {
    depends_ = "";
    put(kSoftware + told);
    EXPECT_EQ(asked_by(automatic()), 1u);
    EXPECT_EQ(asked_by(automatic()), 1u);
  }
  // What changes while it is asked may have come too late for the answer.
  depends_ = note_;
  put(kSoftware);
  EXPECT_EQ(asked_by(automatic()), 1u);
  EXPECT_EQ(asked_by(automatic()), 1u);
  // A loader that looks into the folder that the program runs in.
  depends_ = single_;
  put(kSoftware);
  for (const char* path : {"lib", ":/usr/lib", "/usr/lib:"}) {
    setenv("LD_LIBRARY_PATH", path, 1);
    EXPECT_EQ(asked_by(automatic()), 1u);
    EXPECT_EQ(asked_by(automatic()), 1u) << path;
  }
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_FALSE(fs::exists(file_));
  // With words for the backend it is an answer to another question.
  DeviceRequest told = automatic();
  told.backend = "vulkan", told.options = "speed=1";
  (void)open(told);
  EXPECT_EQ(asked_by(automatic()), 1u);
}

TEST_F(RememberedAnswersTest, TheFileIsReadAsHostileInput) {
  put(kSoftware);
  (void)open();
  tell("hardware");
  // What such a file may hold in general: json_cache_test.
  const std::string good = *read_file(file_);
  auto believed = [&](const std::string& what, const std::string& instead) {
    std::string text = good;
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    write(file_, text.replace(at, what.size(), instead));
    return id() == "cpu:0";
  };
  EXPECT_TRUE(believed("\n", " \n"));
  EXPECT_FALSE(believed("\"when\": ", "\"when\": 9")) << "from the future";
  EXPECT_FALSE(believed("\"when\": ", "\"when\": 1, \"then\": ")) << "a day";
  // Each part of the entry, spoilt.
  for (const auto& [part, spoilt] : {std::pair("\"digest\": \"", "\"digest\": \"0"),
                                     {"\"report\": \"", "\"report\": \"0"},
                                     {"\"depends\": [\n", "\"depends\": [ \"PATH\",\n"},
                                     {"\"depends\": [\n", "\"depends\": [ 7,\n"},
                                     {"\"key\": [\n", "\"key\": [ 7,\n"},
                                     {"\"vulkan\"", "\"opencl\""}})
    EXPECT_FALSE(believed(part, spoilt)) << part;
  for (const char* part : {"\"digest\": ", "\"report\": ", "\"depends\": "})
    EXPECT_FALSE(believed(part, std::string(part) + "7, \"other\": ")) << part;
  // What such a file claims to be a device is not used: only "no" is ever believed.
  const std::string key = library_key(folder_.file("vulkan"), "");
  auto known = [&] { return RememberedAnswers(file_).find("vulkan", key); };
  write(file_, good);
  ASSERT_TRUE(known());
  EXPECT_TRUE(known()->remembered && known()->devices[0].software);
  EXPECT_FALSE(RememberedAnswers(file_).find("opencl", key));
  EXPECT_FALSE(RememberedAnswers(file_).find("vulkan", key + "1"));
}

// A file that moves one backend's answer to another one, or whose answer cannot be read.
TEST_F(RememberedAnswersTest, AnAnswerIsOfItsOwnBackend) {
  BackendReport r;
  r.backend = "opencl", r.reason = reason::kLibraryMissing, r.depends = {single_};
  RememberedAnswers(file_).learn(r, "key", nanoseconds_now() + 1'000'000'000);
  ASSERT_TRUE(RememberedAnswers(file_).find("opencl", "key"));
  std::string text = *read_file(file_);
  const std::string key = "\"opencl\"";
  ASSERT_NE(text.find(key), std::string::npos) << text;
  write(file_, text.replace(text.find(key), key.size(), "\"vulkan\""));
  EXPECT_FALSE(RememberedAnswers(file_).find("vulkan", "key"));
  EXPECT_FALSE(RememberedAnswers(file_).find("opencl", "key"));
  for (const char* report : {"\"report\": \"", "\"report\": \"g", "\"report\": \"00"}) {
    r.backend = "vulkan";
    RememberedAnswers(file_).learn(r, "key", nanoseconds_now() + 1'000'000'000);
    ASSERT_TRUE(RememberedAnswers(file_).find("vulkan", "key"));
    text = *read_file(file_);
    const size_t at = text.find("\"report\": \""), end = text.find('"', at + 11);
    write(file_, text.replace(at, end - at, report));
    EXPECT_FALSE(RememberedAnswers(file_).find("vulkan", "key")) << report;
  }
}

TEST_F(RememberedAnswersTest, WithoutAFileThisProcessRemembers) {
  put(kSoftware);
  for (const char* file : {"", "/proc/nothing/here"}) {
    BackendPlaces p = places();
    p.answers_file = file;
    Registry r(p);
    const size_t before = asked();
    EXPECT_TRUE(r.open(automatic()) && r.open(automatic()));
    EXPECT_EQ(asked(), before + 1) << file;
    EXPECT_TRUE(Registry(p).open(automatic()));
    EXPECT_EQ(asked(), before + 2) << file;
  }
}

TEST_F(RememberedAnswersTest, BeforeNothingCanBeHadEverybodyIsAsked) {
  put(kSoftware);
  const gimbal_backend_entry no_cpu[] = {nullptr};
  auto open_alone = [&] { return Registry(places(), no_cpu).open(automatic()); };
  ASSERT_FALSE(open_alone());
  EXPECT_EQ(asked(), 1u);
  auto d = open_alone();
  ASSERT_FALSE(d);
  EXPECT_EQ(asked(), 2u);
  EXPECT_EQ(d.error().message.find("seen on"), std::string::npos) << d.error().message;
  tell("hardware");
  d = open_alone();
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->device->id(), "vulkan:0");
}

TEST_F(RememberedAnswersTest, OthersAreAskedAsEver) {
  put(kSoftware);
  EXPECT_EQ(id(), "cpu:0");
  folder_.put("rocm", "hardware");
  EXPECT_EQ(id(), "rocm:0") << "a plugin that was not there";
  EXPECT_EQ(asked(), 1u);
  std::error_code e;
  fs::remove(folder_.file("rocm"), e);
  EXPECT_EQ(id(), "cpu:0");
  EXPECT_EQ(asked(), 1u);
}

// A file's time is that of the kernel's last tick, 10 ms ago at most: it may have changed after the question.
TEST_F(RememberedAnswersTest, AChangeWithinATickBeforeTheQuestionIsDoubtful) {
  BackendReport r;
  r.backend = "vulkan", r.reason = reason::kLibraryMissing, r.depends = {single_};
  const int64_t changed = state_of(r.depends).last_change;
  ASSERT_GT(changed, 0);
  RememberedAnswers all("");
  for (const auto& [later, known] : {std::pair(10'000'000, false), {30'000'000, true}}) {
    all.learn(r, "key", changed + later);
    EXPECT_EQ(all.find("vulkan", "key").has_value(), known) << later;
  }
}

TEST(Depends, WhatAProcessHasLoadedAndWhen) {
  const auto mine = mapped_libraries();
  ASSERT_FALSE(mine.empty());
  const auto c = std::find_if(mine.begin(), mine.end(),
                              [](const std::string& f) { return f.find("libc.so") != f.npos; });
  ASSERT_NE(c, mine.end());
  const auto all = all_depends("X\n\n/y\n", mine, {"/z/libq.so.1"});
  auto has = [&](const std::string& line) { return std::find(all.begin(), all.end(), line) != all.end(); };
  EXPECT_TRUE(has("X") && has("/y") && has("/z") && has("/z/libq.so.1") && has("LD_LIBRARY_PATH") &&
              has("/etc/ld.so.cache"));
  EXPECT_TRUE(has(c->substr(0, c->rfind('/')))) << "where others like it would be";
  EXPECT_FALSE(has(*c)) << "it was there before";
  EXPECT_FALSE(has(""));
  EXPECT_EQ(state_of(all).digest, state_of(all).digest);
  EXPECT_NE(state_of({"X"}).digest, state_of({"Y"}).digest);
  EXPECT_EQ(state_of({"/nothing/here", ""}).last_change, 0);
  EXPECT_GT(state_of({"/proc/self/exe"}).last_change, 0);
  EXPECT_LT(state_of({"/usr"}).last_change, nanoseconds_now());
  EXPECT_EQ(boot_id(), boot_id());
}

}  // namespace
}  // namespace gimbal
