// A device that computes something wrong, whose driver changes, or that is too small for a model: what the
// program says and does. The card is a fake (device/plugins/fake.cpp), everything else is what a user runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "support/cli.h"
#include "support/fake_plugins.h"
#include "support/tiny_llama.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// A card called metal with a scripted failure, and a cache folder of the test's own.
class DoubtfulDevice : public testing::Test {
 protected:
  DoubtfulDevice() : cache_(temporary_path("doubtful")) { fs::remove_all(cache_); }

  Ran run(const std::string& told, Args args) {
    const std::string all = "hardware," + told;
    folder_.put("metal", all);
    return gimbal(std::move(args), {.environment = {{"GIMBAL_BACKEND_PATH", folder_.path()},
                                                    {"GIMBAL_FAKE_metal", all},
                                                    {"XDG_CACHE_HOME", cache_}}});
  }
  Ran text(const std::string& told, Args more = {}) { return run(told, with(kText, more)); }
  Json verified() const {
    auto text = read_file(cache_ + "/gimbal/verified.json");
    EXPECT_TRUE(text);
    return text ? Json::parse(*text, nullptr, false)["verified"] : Json::array();
  }
  // Of the card alone: the CPU beside it is verified, too.
  std::vector<Json> verified_cards() const {
    std::vector<Json> cards;
    for (const Json& entry : verified())
      if (entry["key"]["device"] == "metal:0") cards.push_back(entry);
    return cards;
  }
  static const std::string& expected() {
    static const std::string text =
        gimbal({"run", "-p", "Once upon a time", "-n", "8", "--greedy", "--backend", "cpu"}).out;
    return text;
  }

  // The fake has kernels of the kind `fast` only.
  const Args kText{"run",        "-p",   "Once upon a time", "-n",   "8", "--greedy",
                   "--numerics", "fast", "--backend",        "metal"};
  const Args kVerify{"verify", "--backend", "metal", "--strict"};
  PluginFolder folder_;
  std::string cache_;
};

// ---- gimbal verify

TEST_F(DoubtfulDevice, VerifyFailsWhereAKernelIsWrong) {
  const Ran right = run("", kVerify);
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_SAYS(right.out, " 0 wrong");
  const Ran wrong = run("wrong=rms_norm", kVerify);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_SAYS(wrong.out, "\u2717  toy.reference.rms_norm");
  EXPECT_SAYS(wrong.out, " 1 wrong");
  const Json j = json_of(run("wrong=rms_norm", with(kVerify, {"--json"})));
  EXPECT_EQ(j["failed"], 1);
  int failed = 0;
  for (const Json& k : j["kernels"]) {
    EXPECT_EQ(k["state"] == "failed", k["kernel"] == "toy.reference.rms_norm") << k;
    EXPECT_EQ(k["state"] == "failed", !k["failures"].empty()) << k;
    failed += k["state"] == "failed";
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(DoubtfulDevice, VerifyFailsWhereAModelIsWrong) {
  const Args model = with(kVerify, {"default", "--numerics", "fast", "--kernel", "*.add"});
  EXPECT_EQ(run("", model).code, 0);
  const Ran layers = run("wrong=mat_mul,in-models", model);
  EXPECT_EQ(layers.code, 1) << layers.out << layers.err;
  EXPECT_SAYS(layers.out, "first layers against cpu:0: the first ");
  const Ran batches = run("wrong=mat_mul,in-models,from-rows=9", model);
  EXPECT_EQ(batches.code, 1) << batches.out << batches.err;
  EXPECT_SAYS(batches.out, "tokens one by one differ from one batch");
  EXPECT_EQ(json_of(run("wrong=mat_mul,in-models,from-rows=12", with(model, {"--json"})))["failed"], 1);
}

// ---- first use

TEST_F(DoubtfulDevice, TheFirstLayersAreComparedWithTheCpu) {
  const std::string told = "wrong=mat_mul,in-models";
  const Ran unchecked = text(told, {"--verify", "never"});
  EXPECT_NE(unchecked.out, expected()) << "the fault changes nothing, and this test shows nothing";
  const Ran r = text(told);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected());
  EXPECT_SAYS(r.err, "metal:0 is not used: verification failed: the first ");
  EXPECT_SAYS(r.err, "using cpu:0 instead");
  const Ran strict = text(told, {"--strict"});
  EXPECT_EQ(strict.code, 4) << strict.err;
  EXPECT_SAYS(strict.err, "the first ");
  EXPECT_EQ(strict.out, "");
}

// Eight tokens, as many as the first layers are compared with, come out right; a longer batch does not.
TEST_F(DoubtfulDevice, APromptIsComparedWithItsPieces) {
  for (const auto& [from_rows, says] : {std::pair("12", "a prompt in two batches differs from one batch"),
                                        {"9", "tokens one by one differ from one batch"}}) {
    const std::string told = format("wrong=mat_mul,in-models,from-rows={}", from_rows);
    const Ran r = text(told);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, expected());
    EXPECT_SAYS(r.err, "metal:0 is not used: ");
    EXPECT_SAYS(r.err, says);
    const Ran strict = text(told, {"--strict"});
    EXPECT_NE(strict.code, 0);
    EXPECT_SAYS(strict.err, says);
    EXPECT_EQ(strict.out, "");
  }
}

// What was verified holds for a device, its name and its driver. With another of these everything is checked
// again.
TEST_F(DoubtfulDevice, AnotherDriverOrCardIsVerifiedAgain) {
  const std::string first = "driver=driver 1.0,device=Card A", wrong = ",wrong=rms_norm";
  EXPECT_EQ(text(first).err.find("is not used"), std::string::npos);
  ASSERT_EQ(verified_cards().size(), 1u);
  EXPECT_EQ(verified_cards()[0]["key"]["driver"], "driver 1.0");
  EXPECT_EQ(verified_cards()[0]["key"]["name"], "Card A");
  EXPECT_FALSE(contains(text(first + wrong).err, "is not used")) << "the same card and driver: believed";
  for (const char* other : {"driver=driver 1.1,device=Card A", "driver=driver 1.0,device=Card B"}) {
    const Ran r = text(other + wrong);
    EXPECT_EQ(r.out, expected()) << other;
    EXPECT_SAYS(r.err, "wrong numbers on this machine");
  }
  EXPECT_EQ(verified_cards().size(), 3u);
}

// The code that was verified is that of the plugin, too.
TEST_F(DoubtfulDevice, AnotherBuildOfThePluginIsVerifiedAgain) {
  const std::string told = "device=Card A", wrong = "hardware," + told + ",wrong=rms_norm";
  EXPECT_EQ(text(told).err.find("is not used"), std::string::npos);
  folder_.put("metal", wrong, "v2");
  const Ran r = gimbal(kText, {.environment = {{"GIMBAL_BACKEND_PATH", folder_.path()},
                                               {"GIMBAL_FAKE_metal", wrong},
                                               {"XDG_CACHE_HOME", cache_}}});
  EXPECT_EQ(r.out, expected());
  EXPECT_SAYS(r.err, "wrong numbers on this machine");
  EXPECT_EQ(verified_cards().size(), 2u);
}

// A model is known by its tensors' names, formats and sizes.
TEST_F(DoubtfulDevice, AnotherModelIsTriedOutAgain) {
  for (const char* type : {"f32", "f16"})
    EXPECT_EQ(run("", {"run", story_file(type), "-p", "Once", "-n", "1", "--numerics", "fast", "--backend",
                       "metal"})
                  .code,
              0);
  ASSERT_EQ(verified_cards().size(), 1u);
  EXPECT_EQ(verified_cards()[0]["models"].size(), 2u) << "the same names, other formats";

  for (uint32_t inner : {12, 16}) {
    TinyLlama m;
    m.weight = [](uint64_t i) { return i % 3 ? 0.1f : -0.2f; };
    m.u32("feed_forward_length", inner);
    m.tensors["blk.0.ffn_gate.weight"].dims = m.tensors["blk.0.ffn_up.weight"].dims = {8, inner};
    m.tensors["blk.0.ffn_down.weight"].dims = {inner, 8};
    const std::string path = temporary_path("tiny.gguf");
    ASSERT_TRUE(write_file(path, m.build()));
    const Ran r = run("", {"logits", path, "--tokens", "1,2", "-o", temporary_path("tiny.logits"),
                           "--numerics", "fast", "--backend", "metal"});
    EXPECT_EQ(r.code, 0) << r.err;
  }
  EXPECT_EQ(verified_cards()[0]["models"].size(), 4u) << "the same names and formats, other sizes";
}

// ---- too small

class SmallDevice : public DoubtfulDevice {
 protected:
  // A card with this share of what the whole model takes there.
  std::string with_room(double share) {
    const Json plan = json_of(run("", {"plan", "--numerics", "fast", "--backend", "metal", "--json"}));
    const auto free = uint64_t(plan["devices"][0]["total"].get<double>() * share);
    return format("memory=100000000,free={}", free);
  }
  static std::set<std::string> devices(const Json& j) {
    std::set<std::string> all;
    for (const Json& part : j["placement"]) all.insert(part["device"].get<std::string>());
    return all;
  }
};

TEST_F(SmallDevice, TheLayersThatDoNotFitAreComputedOnTheCpuAndThisIsSaid) {
  const std::string small = with_room(0.7);
  const Ran r = text(small);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected());
  EXPECT_SAYS(r.err, "note: ");
  EXPECT_SAYS(r.err, " on cpu:0: the whole model takes ");
  EXPECT_SAYS(r.err, " on metal:0, which has ");
  const Json j = json_of(text(small, {"--json"}));
  EXPECT_EQ(devices(j), (std::set<std::string>{"cpu:0", "metal:0"})) << j["placement"];
  EXPECT_FALSE(j["fallbacks"].empty());
  const Ran strict = text(small, {"--strict"});
  EXPECT_EQ(strict.code, 5) << strict.err;
  EXPECT_SAYS(strict.err, "--strict: ");
  EXPECT_EQ(strict.out, "");
}

// As many layers as fit, because they were asked for: so nothing is replaced, and --strict has no objection.
TEST_F(SmallDevice, AsManyLayersAsFitCanBeAskedFor) {
  const std::string small = with_room(0.7);
  const Ran r = text(small, {"--gpu-layers", "-1", "--strict", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(devices(j), (std::set<std::string>{"cpu:0", "metal:0"})) << j["placement"];
  EXPECT_EQ(j["text"].get<std::string>() + "\n", expected());
  EXPECT_TRUE(j["fallbacks"].empty()) << j["fallbacks"];
}

TEST_F(SmallDevice, WhereNoLayerFitsTheCpuComputesAllAndThisIsSaid) {
  const Ran r = text("memory=100000,free=1000", {"--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(devices(j), std::set<std::string>{"cpu:0"}) << j["placement"];
  EXPECT_EQ(j["text"].get<std::string>() + "\n", expected());
  EXPECT_FALSE(j["fallbacks"].empty());
  for (const Args& more : {Args{"--strict"}, Args{"--strict", "--gpu-layers", "-1"}}) {
    const Ran strict = text("memory=100000,free=1000", more);
    EXPECT_EQ(strict.code, 5) << strict.err;
    EXPECT_EQ(strict.out, "");
  }
}

}  // namespace
}  // namespace gimbal::test
