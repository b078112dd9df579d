// gimbal embed as a user runs it: what it reads and prints, and whom it refuses. That the numbers are right
// is for embedding_test.
#include <gtest/gtest.h>

#include <cmath>

#include "support/cli.h"

namespace gimbal::test {
namespace {

std::string bert() { return golden_dir() + "/more/embed/bert.gguf"; }

TEST(Embed, GivesTheNumbersOfAText) {
  const Ran r = gimbal({"embed", bert(), "Once upon a time", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json j = json_of(r);
  EXPECT_EQ(j["pooling"], "mean");
  ASSERT_EQ(j["embedding"].size(), 48u);
  double length = 0;
  for (const Json& x : j["embedding"]) length += x.get<double>() * x.get<double>();
  EXPECT_NEAR(length, 1, 1e-6);
  const Json ids = json_of(gimbal({"tokenize", bert(), "--text", "Once upon a time", "--json"}))["tokens"];
  EXPECT_EQ(j["tokens"], ids.size());
  EXPECT_EQ(json_of(gimbal({"embed", bert(), "--tokens", joined(ids), "--json"})), j);
  EXPECT_EQ(json_of(gimbal({"embed", bert(), "--text", "Once upon a time", "--json", "-t", "2"})), j);

  const Ran plain = gimbal({"embed", bert(), "Once upon a time"});
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), ' '), 47);
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), 1);
}

TEST(Embed, ReadsLinesAndJsonLines) {
  const std::string text = temporary_path("embed.txt"), jsonl = temporary_path("embed.jsonl");
  ASSERT_TRUE(write_file(text, "Once upon a time\n\nThe dog ran\n"));
  ASSERT_TRUE(write_file(jsonl,
                         "\"Once upon a time\"\n{\"text\": \"The dog ran\", \"id\": 7}\r\n"
                         "{\"tokens\": [1, 20, 30]}\n"));
  const auto lines = lines_of(gimbal({"embed", bert(), "-f", text, "--lines", "--json"}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], json_of(gimbal({"embed", bert(), "Once upon a time", "--json"})));
  EXPECT_EQ(lines[1], json_of(gimbal({"embed", bert(), "--json"}, {.input = "The dog ran\n"})));
  const auto all = lines_of(gimbal({"embed", bert(), "-f", jsonl, "--jsonl"}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0], lines[0]);
  EXPECT_EQ(all[1], lines[1]);
  EXPECT_EQ(all[2]["tokens"], 3);
  EXPECT_EQ(lines_of(gimbal({"embed", bert(), "--jsonl"}, {.input = "\"Once upon a time\""}))[0], lines[0]);

  const std::pair<const char*, const char*> wrong[] = {
      {"{\"txt\": \"a\"}\n", "line 1"},         {"\"a\"\n\nnot JSON\n", "line 3"},
      {"{\"tokens\": [-1]}", "not a token id"}, {"{\"tokens\": []}", "no tokens"},
      {"\n\n", "all lines are empty"},          {"{\"tokens\": [99999]}", "vocabulary"}};
  for (const auto& [input, words] : wrong) {
    const Ran r = gimbal({"embed", bert(), "--jsonl"}, {.input = input});
    EXPECT_EQ(r.code, 2) << input << r.err;
    EXPECT_SAYS(r.err, words);
  }
}

TEST(Embed, PoolsAsAsked) {
  const auto with = [](const Args& more) {
    Args args{"embed", bert(), "--tokens", "1,20,30", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 0) << r.err;
    return json_of(r);
  };
  const Json none = with({"--pooling", "none", "--no-normalize"});
  ASSERT_EQ(none["embedding"].size(), 3u);
  EXPECT_EQ(none["embedding"][0], with({"--pooling", "cls", "--no-normalize"})["embedding"]);
  EXPECT_EQ(none["embedding"][2], with({"--pooling", "last", "--no-normalize"})["embedding"]);
  const Json mean = with({"--no-normalize"});
  for (size_t i = 0; i < 48; i++) {
    double sum = 0;
    for (const Json& row : none["embedding"]) sum += row[i].get<double>();
    EXPECT_EQ(float(sum / 3), mean["embedding"][i].get<float>());
  }
  EXPECT_NE(mean, with({}));
}

TEST(Embed, ControlTokensAreTextUnlessTheyAreAskedFor) {
  const Args args{"embed", story_file("f32"), "a</s>", "--pooling", "last", "--json"};
  const Json plain = json_of(gimbal(args)), special = json_of(gimbal(with(args, {"--parse-special"})));
  EXPECT_GT(plain["tokens"], special["tokens"]);
  EXPECT_NE(plain["embedding"], special["embedding"]);
}

TEST(Embed, ADecoderEmbedsWithThePoolingThatIsNamed) {
  const Ran silent = gimbal({"embed", story_file("f32"), "Once upon a time"});
  EXPECT_EQ(silent.code, 2);
  EXPECT_SAYS(silent.err, "--pooling");
  EXPECT_EQ(json_of(gimbal(
                {"embed", story_file("f32"), "Once upon a time", "--pooling", "last", "--json"}))["pooling"],
            "last");
}

TEST(Embed, LongTextsAreComputedAtOnceOrRefused) {
  std::string ids = "1";
  for (int i = 0; i < 299; i++) ids += ",20";
  const std::string modern = golden_dir() + "/more/embed/modern-bert.gguf";
  EXPECT_EQ(gimbal({"embed", modern, "--tokens", ids, "--ctx", "512"}).code, 0)
      << "longer than the usual batch";
  const Ran cut = gimbal({"embed", modern, "--tokens", ids, "--ctx", "512", "--batch", "64"});
  EXPECT_EQ(cut.code, 2);
  EXPECT_SAYS(cut.err, "--batch");
  const Ran full = gimbal({"embed", modern, "--tokens", ids, "--ctx", "128"});
  EXPECT_EQ(full.code, 2);
  EXPECT_SAYS(full.err, "--ctx");
  EXPECT_NE(gimbal({"embed", bert(), "--tokens", "1", "--ctx", "100000"}).code, 0)
      << "positions that there are not";
}

TEST(Embed, AnEncoderDoesNotGenerate) {
  for (const Args& args : {Args{"run", bert(), "-p", "Hello"}, Args{"logits", bert(), "--tokens", "1"},
                           Args{"bench", bert(), "-p", "8", "-n", "1"}}) {
    const Ran r = gimbal(args);
    EXPECT_EQ(r.code, 2) << args[0];
    EXPECT_SAYS(r.err, "encoder");
    EXPECT_SAYS(r.err, "gimbal embed");
  }
  EXPECT_EQ(gimbal({"plan", bert()}).code, 0);
  EXPECT_EQ(gimbal({"explain", bert()}).code, 0);
  EXPECT_EQ(gimbal({"info", bert()}).code, 0);
}

TEST(Embed, SaysWhatIsWrongWithItsOptions) {
  EXPECT_SAYS(gimbal({"embed", bert(), "a", "--text", "b"}).err, "there is a text already");
  EXPECT_SAYS(gimbal({"embed", bert(), "--text", "b", "--tokens", "1"}).err, "only one");
  EXPECT_SAYS(gimbal({"embed", bert(), "--text", "b", "--lines", "--jsonl"}).err, "exclude");
  EXPECT_EQ(gimbal({"embed", bert(), "b", "--pooling", "sum"}).code, 2);
}

}  // namespace
}  // namespace gimbal::test
