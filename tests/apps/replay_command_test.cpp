// gimbal replay: an answer written again from its certificate, and branches from it.
#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string write(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// The file of a certificate of 60 tokens, and the text of its answer.
struct Original {
  std::string file = temporary_path("answer.json"), text;
  Json certificate;

  explicit Original(const Args& more = {}) {
    Args all{"run",   "-p",     "Once upon a time", "-n", "60", "--seed", "7",
             "--raw", "--json", "--certificate",    file};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = gimbal(all);
    EXPECT_EQ(ran.code, 0) << ran.err;
    text = json_of(ran)["text"];
    certificate = Json::parse(contents_of(file));
  }
};

Json tokens_of(const Json& certificate, size_t first, size_t n) {
  const Json& all = certificate["answer"]["tokens"];
  return Json(all.begin() + ptrdiff_t(first), all.begin() + ptrdiff_t(first + n));
}

TEST(ReplayCommand, TheSameTextAgain) {
  const Original o;
  for (const Args& how :
       {Args{}, Args{"-t", "2"}, Args{"--cpu-variant", "baseline"}, Args{"-m", "default"}}) {
    Args all{"replay", o.file};
    all.insert(all.end(), how.begin(), how.end());
    const Ran ran = gimbal(all);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, o.text + "\n");
    EXPECT_SAYS(ran.err, "same: 60 rows");
  }
  EXPECT_EQ(gimbal({"replay", o.file, "default", "--quiet"}).err, "");
  const Json j = json_of(gimbal({"replay", o.file, "--json", "--until", "10"}));
  EXPECT_EQ(j["verdict"], "same");
  EXPECT_EQ(j["rows"], 10);
  const std::string part = j["text"];
  EXPECT_FALSE(part.empty());
  EXPECT_EQ(o.text.substr(0, part.size()), part);
  EXPECT_LT(part.size(), o.text.size() / 2);
  EXPECT_EQ(json_of(gimbal({"replay", o.file, "--json", "--until", "0"}))["text"], "");
}

TEST(ReplayCommand, WhatDiffersIsNamed) {
  const Original o;
  Json damaged = o.certificate;
  damaged["answer"]["tokens"][30] = o.certificate["answer"]["tokens"][30] == 300 ? 301 : 300;
  const std::string file = write("damaged.json", damaged.dump());
  const Ran ran = gimbal({"replay", file, "--quiet"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_SAYS(ran.err, "differs at token 30 of the answer");
  EXPECT_SAYS(ran.err, "expected " + damaged["answer"]["tokens"][30].dump());
  EXPECT_FALSE(ran.out.empty());
  EXPECT_EQ(o.text.rfind(ran.out.substr(0, ran.out.size() - 1), 0), 0u) << ran.out;
  EXPECT_EQ(gimbal({"replay", file, "--until", "30"}).code, 0) << "before the damage";
  const Ran no_branch = gimbal({"replay", file, "--json", "-p", " and", "-o", temporary_path("no.json")});
  EXPECT_EQ(no_branch.code, 1);
  EXPECT_FALSE(json_of(no_branch).contains("branch")) << "nothing continues an answer that differs";
  EXPECT_EQ(json_of(no_branch)["position"], 30);
  damaged = o.certificate, damaged["model"]["sha256"] = std::string(64, 'a');
  const Ran other = gimbal({"replay", write("model.json", damaged.dump())});
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.out, "");
  EXPECT_SAYS(other.err, "the model's file is another one");
  damaged = o.certificate, damaged["arithmetic"] = 99;
  EXPECT_EQ(gimbal({"replay", write("arithmetic.json", damaged.dump())}).code, 3);
  EXPECT_EQ(gimbal({"replay", write("cut.json", o.certificate.dump().substr(0, 100))}).code, 3);
}

TEST(ReplayCommand, ABranchWithAnotherSeed) {
  const Original o;
  const std::string branch = temporary_path("branch.json");
  const Ran ran = gimbal({"replay", o.file, "--until", "20", "--seed", "8", "-o", branch});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json c = Json::parse(contents_of(branch));
  EXPECT_EQ(c["certificate"], 2);
  EXPECT_EQ(c["text"]["seed"], 8);
  EXPECT_EQ(tokens_of(c, 0, 20), tokens_of(o.certificate, 0, 20));
  EXPECT_NE(c["answer"]["tokens"], o.certificate["answer"]["tokens"]);
  EXPECT_EQ(c["answer"]["tokens"].size(), 60u) << "the limit is that of the whole answer";
  EXPECT_EQ(c["origin"]["tokens"], 20);
  EXPECT_EQ(c["origin"]["kept"], 20);
  // The branch is audited and replayed without its origin.
  const Ran audited = gimbal({"audit", branch, "--json"});
  EXPECT_EQ(audited.code, 0) << audited.out;
  EXPECT_EQ(json_of(audited)["rows"], 40);
  const Ran again = gimbal({"replay", branch});
  EXPECT_EQ(again.out, ran.out) << "with the text of the kept tokens";
  EXPECT_EQ(again.code, 0) << again.err;
  // A branch of the branch, longer than it.
  const std::string next = temporary_path("next.json");
  const Ran longer =
      gimbal({"replay", branch, "--until", "60", "--seed", "9", "-n", "80", "-o", next, "--json"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_EQ(json_of(longer)["branch"]["tokens"].size(), 20u);
  EXPECT_EQ(std::string(json_of(longer)["text"]) + "\n", ran.out);
  EXPECT_EQ(gimbal({"audit", next}).code, 0);
  Json forged = c;
  forged["answer"]["tokens"][19] = c["answer"]["tokens"][19] == 300 ? 301 : 300;
  EXPECT_EQ(gimbal({"audit", write("forged.json", forged.dump())}).code, 1);
}

TEST(ReplayCommand, ABranchWithAMessage) {
  const Original o;
  const std::string branch = temporary_path("branch.json");
  const Ran ran = gimbal(
      {"replay", o.file, "--until", "20", "-p", " Suddenly a dog", "-n", "12", "-o", branch, "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Json c = Json::parse(contents_of(branch));
  EXPECT_EQ(c["origin"]["tokens"], 20);
  EXPECT_EQ(c["origin"]["kept"], 0);
  EXPECT_EQ(c["answer"]["tokens"].size(), 12u);
  const Json& prompt = c["prompt"]["tokens"];
  const size_t before = o.certificate["prompt"]["tokens"].size();
  ASSERT_GT(prompt.size(), before + 20);
  for (size_t i = 0; i < before; i++) EXPECT_EQ(prompt[i], o.certificate["prompt"]["tokens"][i]);
  for (size_t i = 0; i < 20; i++) EXPECT_EQ(prompt[before + i], o.certificate["answer"]["tokens"][i]);
  std::string ids;
  for (const Json& t : prompt) ids += (ids.empty() ? "" : ",") + t.dump();
  const Ran written = gimbal({"run", "--tokens", ids, "-n", "12", "--seed", "7", "--raw", "--json"});
  EXPECT_EQ(json_of(written)["text"], json_of(ran)["branch"]["text"]) << "the same as for this prompt";
  EXPECT_EQ(gimbal({"audit", branch}).code, 0);
}

TEST(ReplayCommand, AConstrainedAnswer) {
  const Original o({"--grammar", "root ::= \" \" [a-z]+ (\" \" [a-z]+)* \".\""});
  EXPECT_EQ(gimbal({"replay", o.file}).out, o.text + (o.text.ends_with('\n') ? "" : "\n"));
  const std::string branch = temporary_path("branch.json");
  const Ran ran = gimbal({"replay", o.file, "--until", "5", "--seed", "8", "-o", branch});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char c : ran.out) EXPECT_TRUE(c == ' ' || c == '.' || c == '\n' || (c >= 'a' && c <= 'z')) << c;
  EXPECT_EQ(gimbal({"audit", branch}).code, 0);
  EXPECT_EQ(tokens_of(Json::parse(contents_of(branch)), 0, 5), tokens_of(o.certificate, 0, 5));
}

TEST(ReplayCommand, LinesThatContinueIt) {
  const Original o;
  const Ran ran =
      gimbal({"replay", o.file, "--until", "20", "--continue"}, {.input = "\n and\n/reset\n/quit\n"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string kept = json_of(gimbal({"replay", o.file, "--until", "20", "--json"}))["text"];
  EXPECT_EQ(ran.out.rfind(kept, 0), 0u) << ran.out;
  EXPECT_SAYS(ran.out, "Each line is added to the text");
  EXPECT_GT(ran.out.size(), kept.size() + 150) << ran.out;
}

TEST(ReplayCommand, PrivateAndSigned) {
  const Original o({"--certificate-private"});
  const Ran without = gimbal({"replay", o.file});
  EXPECT_EQ(without.code, 2);
  EXPECT_SAYS(without.err, "--tokens");
  std::string ids;
  const Json tokens = json_of(gimbal({"tokenize", "--text", "Once upon a time", "--json"}))["tokens"];
  for (const Json& t : tokens) ids += (ids.empty() ? "" : ",") + t.dump();
  EXPECT_EQ(gimbal({"replay", o.file, "--tokens", ids}).out, o.text + "\n");
  const std::string branch = temporary_path("branch.json");
  EXPECT_EQ(gimbal({"replay", o.file, "--tokens", ids, "--until", "9", "--seed", "1", "-o", branch}).code, 0);
  EXPECT_EQ(Json::parse(contents_of(branch))["prompt"]["tokens"].size(), 0u) << "private like its origin";
  EXPECT_EQ(gimbal({"audit", branch, "--tokens", ids}).code, 0);
  EXPECT_EQ(gimbal({"replay", o.file, "--tokens", ids, "--key", std::string(64, '0')}).code, 1);
}

TEST(ReplayCommand, AQuestion) {
  const Original o;
  const std::string branch = temporary_path("branch.json");
  const Ran ran = gimbal({"replay", o.file, "--until", "9", "--chat", "-p", "Why?", "-n", "8", "-o", branch});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_SAYS(ran.out, "\n\n> Why?\n\n");
  EXPECT_EQ(gimbal({"audit", branch}).code, 0);
}

TEST(ReplayCommand, AReceiptWithSeveralAnswers) {
  const Original o;
  const std::string branch = temporary_path("branch.json");
  const Ran other = gimbal({"replay", o.file, "--until", "9", "--seed", "3", "-o", branch});
  ASSERT_EQ(other.code, 0) << other.err;
  const std::string receipt =
      write("receipt.json", Json{{"certificates", {o.certificate, Json::parse(contents_of(branch))}}}.dump());
  const Ran which = gimbal({"replay", receipt});
  EXPECT_EQ(which.code, 2);
  EXPECT_SAYS(which.err, "--choice 1 to --choice 2");
  EXPECT_EQ(gimbal({"replay", receipt, "--choice", "1"}).out, o.text + "\n");
  EXPECT_EQ(gimbal({"replay", receipt, "--choice", "2"}).out, other.out);
}

TEST(ReplayCommand, MistakesAreNamed) {
  const Original o;
  const struct {
    Args more;
    const char* says;
  } mistakes[] = {{{"--until", "61"}, "--until: the answer has 60 tokens, got 61"},
                  {{"--seed", "3"}, "add --until TOKEN"},
                  {{"--until", "3", "--seed", "3", "-p", "x"}, "different branches"},
                  {{"-o", "x.json"}, "--certificate is for a branch"},
                  {{"-n", "5"}, "--max-tokens is for a branch"},
                  {{"--chat"}, "add --message TEXT"},
                  {{"--continue", "--json"}, "--continue is interactive"},
                  {{"--choice", "2"}, "--choice: expected 1 to 1"},
                  {{"-p", ""}, "the message is empty"}};
  for (const auto& [more, says] : mistakes) {
    Args all{"replay", o.file};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = gimbal(all);
    EXPECT_EQ(ran.code, 2) << says << ": " << ran.err;
    EXPECT_SAYS(ran.err, says);
  }
  EXPECT_EQ(gimbal({"replay"}).code, 2);
  EXPECT_EQ(gimbal({"replay", temporary_path("none.json")}).code, 1);
}

}  // namespace
}  // namespace gimbal::test
