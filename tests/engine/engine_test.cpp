// The engine through its own interface: what it verifies, replaces and recovers, and the events that say so.
#include "engine/engine.h"
#include "engine/device_record.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/cpu/cpu_features.h"
#include "runtime/generate.h"
#include "support/cli.h"
#include "support/fake_plugins.h"

namespace gimbal {
namespace {

using test::contains;

// A name for each event, as a test reads them: "refused metal:0".
std::string label_of(const Event& e) {
  struct Names {
    std::string operator()(const Fallback& f) const {
      static constexpr const char* kNames[] = {"instead-of", "refused", "kernel", "layers", "weights"};
      return format("{} {}", kNames[f.kind], f.what);
    }
    std::string operator()(const event::Chosen& c) const { return "chosen " + c.opened.device->id(); }
    std::string operator()(const event::Unfulfilled& u) const { return format("unfulfilled {}", u.field); }
    std::string operator()(const event::LongContext&) const { return "long-context"; }
    std::string operator()(const event::Progress& p) const {
      return format("{} {}", p.stage == event::Progress::Loading ? "loading" : "verifying", p.device);
    }
    std::string operator()(const event::Offloaded& o) const {
      return format("offloaded {}/{} {}", o.layers, o.of, o.devices);
    }
    std::string operator()(const event::NotKept&) const { return "not-kept"; }
    std::string operator()(const event::DraftsEnded&) const { return "drafts-ended"; }
    std::string operator()(const event::Recovered& r) const {
      return format("recovered {} to {}", r.from, r.to);
    }
  };
  return std::visit(Names{}, e);
}

// A scripted fake card called metal, the CPU, and a cache folder of their own.
class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    static int n = 0;
    const std::string cache = test::temporary_path(format("engine-{}", n++));
    std::filesystem::remove_all(cache);
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    options_.backend = "metal", options_.threads = 1, options_.run.kernels.allow_fast = true;
  }
  // Each test has a backend's name of its own: a plugin reads its script once.
  Engine& engine(const std::string& told) {
    folder_.put("metal", "hardware," + told);
    BackendPlaces places;
    places.folders = {folder_.path()};
    registry_ = std::make_unique<Registry>(places);
    engine_ = std::make_unique<Engine>(*registry_, options_, [this](const Event& e) {
      const std::string name = test_name(e);
      if (events_.empty() || events_.back() != name) events_.push_back(name);  // progress comes often
      return !(cancel_ && std::holds_alternative<event::Progress>(e));
    });
    return *engine_;
  }
  static std::string test_name(const Event& e) { return label_of(e); }
  static ModelFile model() { return *open_model_file("default"); }
  static std::string told(const std::vector<Fallback>& all) {
    std::string out;
    for (const Fallback& f : all) out += format("{}: {}\n", f.what, f.why.message);
    return out;
  }

  // A greedy story on the loaded model, moved where its device is lost.
  Result<std::vector<Token>> story(Engine& e, LoadedModelPtr& on, int tokens = 12) {
    auto tokenizer = Tokenizer::create(on->source.file->metadata());
    auto session = Session::create(*on->model);
    if (!session) return session.error();
    GenerateSettings s;
    s.sampler.greedy = true, s.max_tokens = tokens;
    (*session)->on_device_lost(e.on_device_lost(on));
    auto g = generate(**session, **tokenizer, (*tokenizer)->encode("Once upon a time"), s,
                      [](std::string_view, Token) { return true; });
    if (!g) return g.error();
    return g->tokens;
  }
  std::vector<Token> expected() {
    EngineOptions o;
    o.backend = "cpu", o.verify = Verify::Never, o.threads = 1;
    Engine e(*registry_, o);
    auto on = e.load(model());
    auto s = story(e, *on);
    return *s;
  }

  test::PluginFolder folder_;
  EngineOptions options_;
  bool cancel_ = false;
  std::vector<std::string> events_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Engine> engine_;
};

using Events = std::vector<std::string>;

// The host has rows for `--numerics fast` where the CPU has their instructions: then nothing is to be said.
Events on_this_cpu(Events events) {
  if (cpu::cpu_features() & cpu::AVX512_BF16) std::erase(events, "unfulfilled numerics");
  return events;
}

TEST_F(EngineTest, TheDeviceIsVerifiedOnceAndThenUsed) {
  auto first = engine("").load(model());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ((*first)->opened.device->id(), "metal:0");
  EXPECT_EQ(events_, (Events{"chosen metal:0", "verifying metal:0", "loading metal:0"}));
  EXPECT_TRUE((*first)->fallbacks.empty()) << told((*first)->fallbacks);
  EXPECT_TRUE(engine_->unusable().empty());
  first = Error{};
  events_.clear();
  auto again = engine("").load(model());
  ASSERT_TRUE(again);
  EXPECT_EQ(events_, (Events{"chosen metal:0", "loading metal:0"})) << "what was found is kept";
  for (const ReceiptLine& l : (*again)->receipt()) EXPECT_EQ(l.runs, 0u) << "the trial is not the user's";
}

TEST_F(EngineTest, AWrongKernelIsFoundAndTheNextDeviceIsTaken) {
  auto loaded = engine("wrong=rms_norm").load(model());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->opened.device->id(), "cpu:0");
  // The card has one kernel for the op: without it, it does not compute the model.
  EXPECT_EQ(events_, on_this_cpu({"chosen metal:0", "verifying metal:0", "kernel toy.reference.rms_norm",
                                  "refused metal:0", "instead-of metal:0", "chosen cpu:0",
                                  "unfulfilled numerics", "verifying cpu:0", "loading cpu:0"}));
  const auto& unusable = engine_->unusable();
  ASSERT_EQ(unusable.size(), 2u);
  EXPECT_EQ(unusable[0].device, "metal:0");
  EXPECT_EQ(unusable[0].kernel, "toy.reference.rms_norm");
  EXPECT_SAYS(unusable[0].why.message, "wrong numbers on this machine");
  EXPECT_STREQ(unusable[0].why.reason, "verification-failed");
  EXPECT_EQ(unusable[1].device, "metal:0");
  EXPECT_EQ(unusable[1].kernel, "");
  EXPECT_SAYS(told((*loaded)->fallbacks), "wrong numbers on this machine");
  EXPECT_EQ(*story(*engine_, *loaded), expected());
}

TEST_F(EngineTest, UnderStrictAWrongKernelIsAnError) {
  options_.strict = true;
  auto loaded = engine("wrong=rms_norm").load(model());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::NoBackend);
  EXPECT_STREQ(loaded.error().reason, "verification-failed");
  EXPECT_SAYS(loaded.error().message, "toy.reference.rms_norm is not used: wrong numbers");
  ASSERT_FALSE(loaded.error().changes.empty());
  EXPECT_STREQ(loaded.error().changes[0].field, "strict");
  EXPECT_EQ(events_, (Events{"chosen metal:0", "verifying metal:0"})) << "nothing takes its place";
}

TEST_F(EngineTest, ADeviceThatRefusesMemoryIsReplaced) {
  options_.verify = Verify::Never;
  auto loaded = engine("no-memory").load(model());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->opened.device->id(), "cpu:0");
  EXPECT_EQ(events_, on_this_cpu({"chosen metal:0", "refused metal:0", "instead-of metal:0", "chosen cpu:0",
                                  "unfulfilled numerics", "loading cpu:0"}));
  EXPECT_SAYS(told((*loaded)->fallbacks), "the fake card has no memory left");
  EXPECT_EQ(loaded->get()->opened.fallbacks[0].reason, "not-enough-memory");

  options_.strict = true;
  auto strict = engine("no-memory").load(model());
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, Code::OutOfMemory);
}

TEST_F(EngineTest, ALostDeviceIsReplacedInTheMiddleOfAText) {
  options_.verify = Verify::Never;
  Engine& e = engine("lost-at=5");
  auto loading = e.load(model());
  ASSERT_TRUE(loading) << loading.error().message;
  LoadedModelPtr on = *loading;
  auto text = story(e, on);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, expected());
  EXPECT_EQ(on->opened.device->id(), "cpu:0");
  EXPECT_EQ((*loading)->successor, on);
  EXPECT_EQ(events_.back(), "recovered metal:0 to cpu:0");
  ASSERT_EQ(e.unusable().size(), 1u);
  EXPECT_STREQ(e.unusable()[0].why.reason, "device-lost");
  // Another session of the lost model meets the first one where that went.
  LoadedModelPtr other = *loading;
  EXPECT_TRUE(story(e, other, 3));
  EXPECT_EQ(other, on);
}

// Each text comes once: those that were done before the device was lost are not computed again.
TEST_F(EngineTest, ALostDeviceIsReplacedBetweenTwoTextsThatAreEmbedded) {
  options_.verify = Verify::Never;
  const std::vector<std::vector<Token>> texts(20, {1, 30, 40, 50, 60, 70, 80, 90, 100});
  options_.run.batch = 32;
  options_.run = embedding_options(options_.run, *configure(*model().file), texts.size());
  for (const auto& [told, on_metal] : {std::pair("lost-at=1", 0u), {"lost-at=2", 3u}}) {
    Engine& e = engine(told);
    auto loading = e.load(model());
    ASSERT_TRUE(loading) << loading.error().message;
    LoadedModelPtr on = *loading;
    std::vector<size_t> seen;
    std::vector<float> first;
    auto ok = e.embed(on, texts, {}, [&](size_t text, std::span<const float> embedding) -> Status {
      EXPECT_EQ(on->opened.device->id(), text < on_metal ? "metal:0" : "cpu:0");
      seen.push_back(text);
      if (first.empty()) first.assign(embedding.begin(), embedding.end());
      EXPECT_EQ(embedding.size(), first.size());
      for (size_t i = 0; i < first.size(); i++) EXPECT_NEAR(embedding[i], first[i], 1e-5);
      return Done{};
    });
    ASSERT_TRUE(ok) << ok.error().message;
    std::vector<size_t> each(texts.size());
    std::iota(each.begin(), each.end(), 0u);
    EXPECT_EQ(seen, each);
    EXPECT_EQ(on, (*loading)->successor);
    EXPECT_EQ(events_.back(), "recovered metal:0 to cpu:0");
  }
}

TEST_F(EngineTest, UnderStrictALostDeviceIsTheEnd) {
  options_.verify = Verify::Never, options_.strict = true;
  Engine& e = engine("lost-at=2");
  auto loading = e.load(model());
  ASSERT_TRUE(loading) << loading.error().message;
  LoadedModelPtr on = *loading;
  auto text = story(e, on);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::NoBackend);
  EXPECT_STREQ(text.error().reason, "device-lost");
}

TEST_F(EngineTest, WhatCannotBeHadIsSaidOrRefused) {
  options_.backend = "cpu", options_.gpu_layers = 3, options_.run.kernels.patterns = {"nonsense"};
  options_.run.kernels.allow_fast = false;
  ASSERT_TRUE(engine("").open_device());
  EXPECT_EQ(events_, (Events{"unfulfilled gpu_layers", "unfulfilled prefer_kernel", "chosen cpu:0"}));
  options_.strict = true;
  auto refused = engine("").open_device();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::NoBackend);
  EXPECT_STREQ(refused.error().field, "gpu_layers");
  EXPECT_EQ(refused.error().value, "3");
}

TEST_F(EngineTest, AVariantThatThereIsNoneOf) {
  options_.backend = "cpu", options_.cpu_variant = "pentium", options_.strict = true;
  auto refused = engine("").open_device();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Usage);
  EXPECT_STREQ(refused.error().field, "cpu_variant");
  EXPECT_SAYS(refused.error().limit, "baseline");
}

TEST_F(EngineTest, ProgressCanCancel) {
  cancel_ = true;
  auto loaded = engine("").load(model());
  ASSERT_FALSE(loaded);
  EXPECT_SAYS(loaded.error().message, "cancelled");
}

TEST(FindModel, ANameThatIsNearIsAChange) {
  auto none = open_model_file("stories260k-nothing");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::NotFound);
  EXPECT_STREQ(none.error().reason, reason::kNoSuchModel);
  EXPECT_EQ(none.error().value, "stories260k-nothing");
}

// What was found out about a backend's code says nothing about the code that takes its place.
TEST(DeviceRecord, ForgetsWhatItKnowsOfReplacedCode) {
  const EngineOptions options;
  DeviceRecord record(options, {});
  record.measured = {{"metal:0", DType::F16, 64, 1, {{"old", 1.}}},
                     {"cpu:0", DType::F16, 64, 1, {{"its", 1.}}}};
  record.lost("metal:0"), record.lost("cpu:0");
  record.forget("metal");
  ASSERT_EQ(record.measured.size(), 1u);
  EXPECT_EQ(record.measured[0].device, "cpu:0");
  EXPECT_FALSE(record.is_unusable("metal:0", ""));
  EXPECT_TRUE(record.is_unusable("cpu:0", ""));
  ASSERT_EQ(record.run_options().kernels.measured.size(), 1u);
}

}  // namespace
}  // namespace gimbal
