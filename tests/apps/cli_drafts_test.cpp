// --draft of the program: the same text, what was kept of the drafts, and words that are wrong.
#include <gtest/gtest.h>

#include "support/cli.h"
#include "support/fake_plugins.h"

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

// A fake card that is lost in the middle of a text. The draft's model is on it, too.
TEST(CliDrafts, ADeviceThatIsLostChangesNothing) {
  PluginFolder folder;
  const Args args = run_with({"--greedy", "--numerics", "fast"});
  const std::string expected = gimbal(args).out;
  int lost = 0;
  for (const char* told : {"hardware,lost-at=3", "hardware,lost-at=9", "hardware,lost-at=40"})
    for (const std::string draft : {"ngram", "default"}) {
      folder.put("metal", told);
      Args a = args;
      for (const std::string& more :
           {std::string("--backend"), std::string("metal"), std::string("--draft"), draft})
        a.push_back(more);
      const Ran r = gimbal(a, {.environment = {{"GIMBAL_BACKEND_PATH", folder.path()},
                                               {"GIMBAL_FAKE_metal", told},
                                               {"XDG_CACHE_HOME", temporary_path("drafts-lost")}}});
      EXPECT_EQ(r.code, 0) << told << r.err;
      EXPECT_EQ(r.out, expected) << told << ", " << draft;
      lost += contains(r.err, "going on on cpu:0");
    }
  EXPECT_GE(lost, 4) << "no device was lost";
}

}  // namespace
}  // namespace gimbal::test
