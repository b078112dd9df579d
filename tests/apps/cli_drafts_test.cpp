// --draft of the program: the same text, what was kept of the drafts, and words that are wrong.
#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/cli.h"
#include "support/fake_plugins.h"
#include "support/made_draft_head.h"
#include "support/nextn.h"

namespace gimbal::test {
namespace {

const std::string kPrompt = "Lily saw a cat. Tom saw a cat. Lily saw a cat. Tom saw a cat. Lily saw";

Args run_with(const Args& more) {
  Args a{"run", "-p", kPrompt, "-n", "80", "--verify", "never", "--ignore-eos", "-t", "1"};
  a.insert(a.end(), more.begin(), more.end());
  return a;
}

TEST(CliDrafts, TheTextIsTheSame) {
  for (const Args& way :
       {Args{"--greedy"}, Args{"--seed", "3"}, Args{"--seed", "4", "--repeat-penalty", "1.2"},
        Args{"--seed", "5", "--stop", "cat"}, Args{"--seed", "6", "--ctx", "70"}}) {
    const Ran plain = gimbal(run_with(way));
    ASSERT_EQ(plain.code, 0) << plain.err;
    for (const std::string draft : {"off", "auto", "ngram", "default", "MODEL"}) {
      Args a = way;
      a.push_back("--draft"), a.push_back(draft == "MODEL" ? story_file("q8_0") : draft);
      const Ran r = gimbal(run_with(a));
      EXPECT_EQ(r.code, 0) << r.err;
      EXPECT_EQ(r.out, plain.out) << draft;
    }
  }
}

TEST(CliDrafts, AreCounted) {
  const Json off = json_of(gimbal(run_with({"--greedy", "--json"})));
  ASSERT_TRUE(off.contains("draft"));
  EXPECT_TRUE(off["draft"].is_null());
  const Json on = json_of(gimbal(run_with({"--greedy", "--json", "--draft", "ngram"})));
  expect_keys(on["draft"], {"from", "steps", "tokens", "drafted", "accepted", "seconds"});
  EXPECT_EQ(on["draft"]["from"], "ngram");
  EXPECT_EQ(on["draft"]["tokens"], 79) << "the first comes with the prompt";
  EXPECT_EQ(on["text"], off["text"]);
  EXPECT_GT(on["memory"]["output"], off["memory"]["output"]) << "the rows of drafts have logits";
  EXPECT_SAYS(gimbal(run_with({"--greedy", "--stats", "--draft", "ngram"})).err, "tokens a step, from ngram");
}

TEST(CliDrafts, WhatCannotDraftIsRefused) {
  const Ran none = gimbal(run_with({"--draft", "no-such-model"}));
  EXPECT_EQ(none.code, 1);
  EXPECT_SAYS(none.err, "no-such-model");
  const std::string file = temporary_path("gpt-2.gguf");
  ASSERT_TRUE(write_file(file, gunzip_file(golden_dir() + "/vocab/gpt-2.gguf.gz")));
  const Ran other = gimbal(run_with({"--draft", file}));
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_SAYS(other.err, "another vocabulary");
  EXPECT_SAYS(other.err, "--draft ngram");
}

TEST(CliDrafts, ByTheFilesOwnLayers) {
  const std::string file = with_nextn(golden_dir() + "/more/arch/glm4moe.gguf");
  const Args args{"run",    file, "--tokens", "5,6,7,8,9,5,6,7", "-n", "40", "--verify", "never", "--greedy",
                  "--json", "-t", "1",        "--ignore-eos"};
  const Json plain = json_of(gimbal(args));
  for (const std::string draft : {"mtp", "auto", "ngram"}) {
    Args a = args;
    a.push_back("--draft"), a.push_back(draft);
    const Json j = json_of(gimbal(a));
    EXPECT_EQ(j["tokens"], plain["tokens"]);
    EXPECT_EQ(j["draft"]["from"], draft == "ngram" ? "ngram" : "mtp");
  }
  EXPECT_EQ(gimbal({"bench", file, "-p", "16", "-n", "20", "-r", "1", "-t", "1", "--verify", "never",
                    "--limit-megabytes", "8", "--draft", "mtp"})
                .code,
            0);
  const Ran none = gimbal(run_with({"--draft", "mtp"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_SAYS(none.err, "no layers for multi-token prediction");
  // Verified, as at the first use of a model.
  const Ran first = gimbal({"run", file, "--tokens", "5,6,7", "-n", "9", "--draft", "mtp", "-t", "1"},
                           {.environment = {{"XDG_CACHE_HOME", temporary_path("mtp-first")}}});
  EXPECT_EQ(first.code, 0) << first.err;
}

TEST(CliDrafts, ByADraftHead) {
  const std::string model = story_file("q8_0");
  const std::string head = made_draft_head(*open_gguf(model));
  auto run = [&](const Args& more) {
    Args a{"run", model, "-p", kPrompt, "-n", "40", "-t", "1", "--greedy", "--json", "--ignore-eos"};
    a.insert(a.end(), more.begin(), more.end());
    return gimbal(a, {.environment = {{"XDG_CACHE_HOME", temporary_path("head-first")}}});
  };
  const Json plain = json_of(run({})), drafted = json_of(run({"--draft", head}));
  EXPECT_EQ(drafted["text"], plain["text"]);
  EXPECT_EQ(drafted["draft"]["from"], "eagle3");
  // Alone it is no model, and it reads models of one width only.
  const Ran alone = gimbal({"run", head, "-p", "x"});
  EXPECT_EQ(alone.code, 3) << alone.err;
  EXPECT_SAYS(alone.err, "draft head");
  const Ran other =
      gimbal({"run", golden_dir() + "/arch/command-r.gguf", "--tokens", "1,2", "--draft", head});
  EXPECT_NE(other.code, 0);
  EXPECT_SAYS(other.err, "cannot draft for");
}

TEST(CliDrafts, PlansSayWhatTheyTake) {
  const std::string file = with_nextn(golden_dir() + "/more/arch/glm4moe.gguf");
  auto plan = [](const std::string& model, const std::string& draft, const Args& more = {}) {
    Args a{"plan", model, "--ctx", "128", "--draft", draft};
    a.insert(a.end(), more.begin(), more.end());
    return gimbal(a);
  };
  auto total = [](const Json& j) { return j["host"]["total"].get<uint64_t>(); };
  for (const auto& [model, draft] :
       {std::pair(file, "mtp"), {file, "auto"}, {story_file("f32"), "default"}}) {
    const Json off = json_of(plan(model, "off", {"--json"})),
               ngram = json_of(plan(model, "ngram", {"--json"})),
               on = json_of(plan(model, draft, {"--json"}));
    EXPECT_TRUE(off["draft"].is_null());
    EXPECT_TRUE(ngram["draft"].is_null());
    EXPECT_GT(total(ngram), total(off)) << "the logits of the drafts";
    EXPECT_GE(total(on), total(ngram));
    expect_keys(on["draft"], {"model", "devices", "host"});
    EXPECT_GT(total(on["draft"]), 0u);
    EXPECT_EQ(on["draft"]["devices"][0]["device"], "cpu:0");
    EXPECT_SAYS(plan(model, draft).out, "for drafts");
  }
  // What drafts is loaded first: its memory is not free for the other.
  const Json alone = json_of(plan(story_file("f32"), "ngram", {"--json"})),
             beside = json_of(plan(story_file("f32"), "default", {"--json", "--ctx", "4000000"}));
  EXPECT_EQ(beside["context"], 4000000);
  EXPECT_LT(beside["host"]["free"].get<int64_t>() + int64_t(total(beside["draft"])) / 2,
            alone["host"]["free"].get<int64_t>());
  EXPECT_EQ(plan(file, "no-such-model").code, 1);
}

TEST(CliDrafts, BenchMeasuresThem) {
  for (const std::string draft : {"ngram", "scripted:0.5", "default"}) {
    const Ran r = gimbal({"bench", "-p", "16", "-n", "20", "-r", "1", "-t", "1", "--verify", "never",
                          "--json", "--limit-megabytes", "8", "--draft", draft});
    ASSERT_EQ(r.code, 0) << r.err;
    const Json j = json_of(r)["draft"];
    expect_keys(j, {"from", "steps", "tokens", "drafted", "accepted", "ratio", "tokens_per_second",
                    "plain_tokens_per_second"});
    EXPECT_EQ(j["tokens"], 20);
  }
  for (const std::string draft : {"scripted:", "scripted:2", "scripted:x", "off"}) {
    const Ran r = gimbal({"bench", "-n", "4", "--draft", draft});
    EXPECT_EQ(r.code, 2) << draft;
    EXPECT_SAYS(r.err, "--draft");
  }
  EXPECT_EQ(gimbal({"bench", "--kernels", "--draft", "ngram"}).code, 2);
}

// A fake card that is lost in the middle of a text. What drafts is on it, too: the draft's model, or the
// layers of the file itself. Answers how often it was lost.
int lost_while_drafting(const Args& args, const Args& where, const std::vector<std::string>& drafts) {
  PluginFolder folder;
  const Ran plain = gimbal(args);
  EXPECT_EQ(plain.code, 0) << plain.err;
  int lost = 0;
  for (const char* told : {"hardware,lost-at=3", "hardware,lost-at=9", "hardware,lost-at=40"})
    for (const std::string& draft : drafts) {
      folder.put("metal", told);
      Args a = args;
      a.insert(a.end(), where.begin(), where.end());
      a.push_back("--draft"), a.push_back(draft);
      const Ran r = gimbal(a, {.environment = {{"GIMBAL_BACKEND_PATH", folder.path()},
                                               {"GIMBAL_FAKE_metal", told},
                                               {"XDG_CACHE_HOME", temporary_path("drafts-lost")}}});
      EXPECT_EQ(r.code, 0) << told << r.err;
      EXPECT_EQ(r.out, plain.out) << told << ", " << draft;
      lost += contains(r.err, "continuing on cpu:0");
      a.push_back("--strict");
      const Ran strict = gimbal(a, {.environment = {{"GIMBAL_BACKEND_PATH", folder.path()},
                                                    {"GIMBAL_FAKE_metal", told},
                                                    {"XDG_CACHE_HOME", temporary_path("drafts-strict")}}});
      EXPECT_EQ(strict.code, contains(r.err, "continuing on cpu:0") ? 4 : 0) << told << draft << strict.err;
    }
  return lost;
}

TEST(CliDrafts, ADeviceThatIsLostChangesNothing) {
  EXPECT_GE(lost_while_drafting(run_with({"--greedy", "--numerics", "fast"}), {"--backend", "metal"},
                                {"ngram", "default"}),
            4);
}

TEST(CliDrafts, ADeviceThatIsLostWithTheLayersThatDraftChangesNothing) {
  const std::string file = with_nextn(golden_dir() + "/more/arch/glm4moe.gguf");
  EXPECT_GE(
      lost_while_drafting({"run", file, "--tokens", "5,9,200,31,5,9,200", "-n", "40", "--verify", "never",
                           "--ignore-eos", "-t", "1", "--greedy", "--numerics", "fast", "--print-tokens"},
                          {"--split", "metal=1,cpu=rest"}, {"mtp"}),
      2);
}

}  // namespace
}  // namespace gimbal::test
