// A device that fails late: at loading, while it is verified, or in the middle of a text. Without --strict
// the text comes out whole and the same, and what happened is said; with it, nothing is replaced.
#include <gtest/gtest.h>

#include "support/cli.h"
#include "support/fake_plugins.h"

namespace gimbal::test {
namespace {

// A fake card called metal, told to fail. It has only kernels of the kind `fast`.
class DeviceFailsTest : public testing::Test {
 protected:
  Ran run(const std::string& told, Args more = {}) {
    folder_.put("metal", "hardware," + told);
    static int n = 0;
    Args args{"run",        "-p",   "Once upon a time", "-n",   "12", "--greedy",
              "--numerics", "fast", "--backend",        "metal"};
    args.insert(args.end(), more.begin(), more.end());
    return gimbal(args, {.environment = {{"GIMBAL_BACKEND_PATH", folder_.path()},
                                         {"GIMBAL_FAKE_metal", "hardware," + told},
                                         {"XDG_CACHE_HOME", temporary_path(format("fails-{}", n++))}}});
  }
  static std::string expected() {
    static const std::string text =
        gimbal({"run", "-p", "Once upon a time", "-n", "12", "--greedy", "--backend", "cpu"}).out;
    return text;
  }
  PluginFolder folder_;
};

TEST_F(DeviceFailsTest, WithoutAFaultItIsUsed) {
  const Ran r = run("", {"--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(j["device"], "metal:0");
  EXPECT_EQ(j["text"].get<std::string>() + "\n", expected());
}

// Its table ends before the optional functions.
TEST_F(DeviceFailsTest, WhatIsNotCountedIsSaid) {
  const Ran stats = run("uncounted", {"--stats"});
  ASSERT_EQ(stats.code, 0) << stats.err;
  EXPECT_SAYS(stats.err, "not counted");
  EXPECT_SAYS(stats.err, "device metal:0 does not count kernel runs");
  EXPECT_SAYS(stats.err, "? x toy.reference.attention");
  const Json j = json_of(run("uncounted", {"--json"}));
  ASSERT_EQ(j["not_counted"].size(), 1u);
  EXPECT_SAYS(j["not_counted"][0].get<std::string>(), "metal:0 does not count");
  ASSERT_GT(j["kernels"].size(), 5u);
  for (const Json& k : j["kernels"]) EXPECT_TRUE(k["runs"].is_null()) << k.dump();

  const Json counted = json_of(run("", {"--json"}));
  EXPECT_TRUE(counted["not_counted"].empty());
  const Ran told = run("", {"--stats"});
  EXPECT_FALSE(contains(told.err, "not counted"));
  int lines = 0;
  for (const Json& k : counted["kernels"]) {
    ASSERT_TRUE(k["runs"].is_number()) << k.dump();
    const auto runs = k["runs"].get<uint64_t>();
    if (!runs) continue;
    EXPECT_SAYS(told.err, format("{} x {}: ", runs, k["kernel"].get<std::string>()));
    lines++;
  }
  EXPECT_GT(lines, 5) << "the same text, counted twice";
}

TEST_F(DeviceFailsTest, LostInTheMiddleOfAText) {
  for (const char* told : {"lost-at=1", "lost-at=2", "lost-at=7"}) {
    const Ran r = run(told, {"--verify", "never"});
    EXPECT_EQ(r.code, 0) << told << r.err;
    EXPECT_EQ(r.out, expected()) << told;
    EXPECT_SAYS(r.err, "metal:0 was lost after");
    EXPECT_SAYS(r.err, "continuing on cpu:0");
    const Ran strict = run(told, {"--verify", "never", "--strict"});
    EXPECT_EQ(strict.code, 4) << told << strict.err;
    EXPECT_FALSE(contains(strict.err, "continuing"));
  }
}

// Texts whose embeddings are printed already are not computed again.
TEST_F(DeviceFailsTest, LostBetweenTwoTexts) {
  auto embed = [&](const std::string& told, Args more) {
    Args args{"embed", story_file("f32"), "--lines", "--pooling", "mean", "-b", "32", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    std::string lines;
    for (int i = 0; i < 40; i++) lines += format("Once upon a time there were {} dogs\n", i);
    folder_.put("metal", "hardware," + told);
    return gimbal(args, {.input = lines,
                         .environment = {{"GIMBAL_BACKEND_PATH", folder_.path()},
                                         {"GIMBAL_FAKE_metal", "hardware," + told},
                                         {"XDG_CACHE_HOME", temporary_path("fails-embedding")}}});
  };
  const Ran expected = embed("", {"--backend", "cpu"});
  ASSERT_EQ(expected.code, 0) << expected.err;
  const auto lines = lines_of(expected);
  ASSERT_EQ(lines.size(), 40u);
  for (const char* told : {"lost-at=1", "lost-at=3"}) {
    const Args metal{"--backend", "metal", "--numerics", "fast", "--verify", "never"};
    const Ran r = embed(told, metal);
    EXPECT_EQ(r.code, 0) << told << r.err;
    const auto got = lines_of(r);
    ASSERT_EQ(got.size(), lines.size()) << told;
    for (size_t i = 0; i < lines.size(); i++)
      for (size_t k = 0; k < lines[i]["embedding"].size(); k++)
        EXPECT_NEAR(got[i]["embedding"][k].get<double>(), lines[i]["embedding"][k].get<double>(), 1e-5);
    EXPECT_EQ(got.back(), lines.back()) << "of the CPU";
    EXPECT_SAYS(r.err, "metal:0 was lost after");
    EXPECT_SAYS(r.err, "of 40 texts");
    EXPECT_SAYS(r.err, "continuing on cpu:0");
    Args strict = metal;
    strict.push_back("--strict");
    EXPECT_EQ(embed(told, strict).code, 4) << told;
  }
}

TEST_F(DeviceFailsTest, AllLayersAreOnTheGpuUnlessAskedOtherwise) {
  auto placement = [&](Args more) {
    more.push_back("--json");
    return json_of(run("", more))["placement"];
  };
  const Json all = placement({});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["device"], "metal:0");
  EXPECT_EQ(placement({"--gpu-layers", "-1"})[0]["layers"], all[0]["layers"]);
  EXPECT_EQ(placement({"--gpu-layers", "2"}).size(), 2u);
}

TEST_F(DeviceFailsTest, WrongNumbersInOneKernel) {
  const Ran r = run("wrong=rms_norm");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected());
  EXPECT_SAYS(r.err, "wrong numbers on this machine");
  EXPECT_SAYS(r.err, "verification failed");
  EXPECT_SAYS(r.err, "using cpu:0 instead");
  const Ran strict = run("wrong=rms_norm", {"--strict"});
  EXPECT_EQ(strict.code, 4) << strict.err;
  EXPECT_SAYS(strict.err, "wrong numbers on this machine");
  EXPECT_EQ(strict.out, "");
}

// A model with experts, which the card knows nothing about.
TEST_F(DeviceFailsTest, NoKernelForTheModel) {
  const std::string model = golden_dir() + "/more/arch/glm4moe.gguf";
  const Args tokens{"run", model, "--tokens", "5,9,200", "-n", "6", "--greedy", "--print-tokens"};
  const Args cpu{"--backend", "cpu"}, metal{"--backend", "metal", "--numerics", "fast"},
      any{"--numerics", "fast"}, never{"--numerics", "fast", "--verify", "never"};
  folder_.put("metal", "hardware");
  int n = 0;
  auto run = [&](const Args& how, const Args& more = {}) {
    Args a = tokens;
    a.insert(a.end(), how.begin(), how.end());
    a.insert(a.end(), more.begin(), more.end());
    return gimbal(a, {.environment = {{"GIMBAL_BACKEND_PATH", folder_.path()},
                                      {"XDG_CACHE_HOME", temporary_path(format("no-kernel-{}", n++))}}});
  };
  const std::string want = run(cpu).out;
  EXPECT_FALSE(want.empty());
  for (const Args& how : {metal, any, never}) {
    const Ran r = run(how);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, want);
    EXPECT_SAYS(r.err, "metal:0 is not used");
    EXPECT_SAYS(r.err, "has no kernel that computes 'blk.1.expert_mat_mul'");
    const Ran strict = run(how, {"--strict"});
    EXPECT_EQ(strict.code, 4) << strict.err;
    EXPECT_EQ(strict.out, "");
    EXPECT_SAYS(strict.err, "has no kernel that computes");
  }
  const Ran split = run({"--numerics", "fast", "--split", "metal=2,cpu=rest"});
  EXPECT_EQ(split.code, 3) << "what was asked for layer by layer is not replaced: " << split.err;
}

TEST_F(DeviceFailsTest, NoMemoryAtLoading) {
  const Ran r = run("no-memory", {"--verify", "never"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected());
  EXPECT_SAYS(r.err, "metal:0 is not used");
  EXPECT_SAYS(r.err, "using cpu:0 instead");
  EXPECT_EQ(run("no-memory", {"--verify", "never", "--strict"}).code, 5);
}

}  // namespace
}  // namespace gimbal::test
