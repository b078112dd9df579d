// A backend's plugin is replaced while a model computes with it: through the engine, as a server does it.
#include <gtest/gtest.h>

#include "device/reason.h"
#include "engine/engine.h"
#include "runtime/generate.h"
#include "support/cli.h"
#include "support/fake_plugins.h"
#include "support/loaded.h"

namespace gimbal {
namespace {

using test::contains;

// A fake card called metal, version 1; the next version lies beside it under another name.
class ReloadBackendTest : public testing::Test {
 protected:
  ReloadBackendTest() {
    static int n = 0;
    const std::string cache = test::temporary_path(format("reload-{}", n++));
    std::filesystem::remove_all(cache);
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    options_.backend = "metal", options_.strict = true, options_.threads = 1;
    options_.run.kernels.allow_fast = true;
    folder_.put("metal", "hardware");
    BackendPlaces places;
    places.folders = {folder_.path()};
    places.probe.limit = std::chrono::milliseconds(2000);
    registry_ = std::make_unique<Registry>(places);
    engine_ = std::make_unique<Engine>(*registry_, options_, [this](const Event& e) {
      const auto* p = std::get_if<event::Progress>(&e);
      verified_ += p && p->stage == event::Progress::Verifying;
      return !(cancel_ && p);
    });
  }
  std::string next(const std::string& name, const std::string& told, const std::string& which = "v2") const {
    return next_.put(name, "named=metal,hardware," + told, which);
  }
  static std::string version(const LoadedModelPtr& m) { return m->opened.device->describe().name; }
  LoadedModelPtr load() {
    auto loaded = engine_->load(*open_model_file("default"));
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? *loaded : nullptr;
  }
  // The likeliest tokens behind `begin`.
  static std::vector<Token> story(Session& s, Token begin, int n) {
    std::vector<Token> all;
    for (Token t = begin; n > 0; n--) {
      auto ok = s.advance(std::span(&t, 1), Session::Wanted::Last, [&](size_t, std::span<const float> l) {
        t = Token(std::max_element(l.begin(), l.end()) - l.begin());
      });
      EXPECT_TRUE(ok) << ok.error().message;
      all.push_back(t);
    }
    return all;
  }

  test::PluginFolder folder_, next_;
  EngineOptions options_;
  bool cancel_ = false;
  int verified_ = 0;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ReloadBackendTest, RunningWorkGoesOnAndWhatIsLoadedNextHasTheNewCode) {
  LoadedModelPtr old = load();
  ASSERT_TRUE(old);
  auto session = Session::create(*old->model);
  ASSERT_TRUE(session);
  std::vector<Token> told = story(**session, 1, 4);
  verified_ = 0;
  const std::string plugin = next("metal_b", "");
  auto r = engine_->reload_backend(plugin);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->backend, "metal");
  EXPECT_EQ(r->before.plugin, folder_.file("metal"));
  EXPECT_TRUE(r->before.build.starts_with("fake 1-")) << r->before.build;
  EXPECT_EQ(r->now.plugin, plugin);
  EXPECT_TRUE(r->now.build.starts_with("fake 2-")) << r->now.build;
  EXPECT_TRUE(r->draining);
  EXPECT_EQ(r->devices, std::vector<std::string>{"metal:0"});
  EXPECT_GT(r->kernels, 10u);
  EXPECT_GE(size_t(verified_), r->kernels) << "every one of them, before it is used";

  // The old one continues in the middle of its text; the new one writes the same text from the beginning.
  for (Token t : story(**session, told.back(), 4)) told.push_back(t);
  EXPECT_EQ(version(old), "fake, version 1");
  verified_ = 0;
  const LoadedModelPtr fresh = load();
  ASSERT_TRUE(fresh);
  EXPECT_EQ(version(fresh), "fake, version 2");
  EXPECT_EQ(verified_, 0) << "what the exchange found out is known";
  auto second = Session::create(*fresh->model);
  ASSERT_TRUE(second);
  EXPECT_EQ(story(**second, 1, 8), told);

  EXPECT_TRUE(test::loaded("metal"));
  session = Error{};
  old.reset();
  EXPECT_FALSE(test::loaded("metal")) << "it leaves with the last model that computes with it";
}

TEST_F(ReloadBackendTest, WhatIsNoGoodIsRefusedAndNothingChanges) {
  const LoadedModelPtr old = load();
  ASSERT_TRUE(old);
  struct Case {
    const char *name, *told, *which, *reason, *word;
  };
  for (const Case& c :
       {Case{"metal_c", "wrong=rope", "v2", reason::kVerificationFailed, "toy.reference.rope of metal:0"},
        {"metal_d", "crash", "v2", reason::kProbeCrashed, "SIGSEGV"},
        {"metal_e", "hang", "v2", reason::kProbeTimeout, "did not answer"},
        {"metal_f", "abi=3", "v2", reason::kAbiMismatch, "version 3"},
        {"metal_g", "open-fails,says=no card/plug it in", "v2", reason::kOpenFailed, "no card"},
        {"metal_h", "", "foreign", reason::kSymbolMissing, "gimbal_plugin_entry"}}) {
    const std::string plugin = next(c.name, c.told, c.which);
    auto r = engine_->reload_backend(plugin);
    ASSERT_FALSE(r) << c.name;
    EXPECT_STREQ(r.error().reason, c.reason) << r.error().message;
    EXPECT_SAYS(r.error().message, c.word);
    EXPECT_SAYS(r.error().message, format("'{}' was rejected, and nothing is replaced", plugin));
    EXPECT_FALSE(test::loaded(c.name)) << "it is gone again";
  }
  EXPECT_EQ(version(load()), "fake, version 1");
  // By an application that would rather not wait for it.
  cancel_ = true;
  EXPECT_FALSE(engine_->reload_backend(next("metal_i", "")));
  cancel_ = false;
  EXPECT_EQ(version(load()), "fake, version 1");
}

// As many drivers: they open in a copy of a process in which they run, and compute nothing there.
TEST_F(ReloadBackendTest, WhatFailsOnlyInACopyOfThisProcessIsTaken) {
  ASSERT_TRUE(load());
  auto r = engine_->reload_backend(next("metal_k", "lost-in-copies"));
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(version(load()), "fake, version 2");
}

// The code that failed is gone, and so is what was held against it.
TEST_F(ReloadBackendTest, RepairsABackendThatComputedWrong) {
  options_.strict = false;
  folder_.put("metal", "hardware,wrong=rms_norm");
  BackendPlaces places;
  places.folders = {folder_.path()};
  Registry registry(places);
  Engine engine(registry, options_);
  const ModelFile model = *open_model_file("default");
  auto first = engine.load(model);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ((*first)->opened.device->id(), "cpu:0");
  EXPECT_FALSE(engine.unusable().empty());
  ASSERT_TRUE(engine.reload_backend(next("metal_j", "")));
  EXPECT_TRUE(engine.unusable().empty());
  auto second = engine.load(model);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*second)->opened.device->id(), "metal:0");
  EXPECT_TRUE((*second)->fallbacks.empty());
}

}  // namespace
}  // namespace gimbal
