// gimbal audit: certificates that the command line and the server write, checked by the program.
#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string write(const std::string& name, const std::string& text) {
  const std::string path = temporary_path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(AuditCommand, AnAnswerOfTheCommandLine) {
  const std::string file = temporary_path("answer.json");
  const Ran ran = gimbal({"run", "-p", "Once upon a time", "-n", "60", "--seed", "7", "--raw",
                          "--print-tokens", "--certificate", file});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json c = Json::parse(contents_of(file));
  EXPECT_EQ(c["answer"]["tokens"].size(), 60u);
  std::string tokens;
  for (const Json& t : c["answer"]["tokens"])
    tokens += (tokens.empty() ? "" : ",") + std::to_string(t.get<int>());
  EXPECT_EQ(ran.out, tokens + "\n");
  for (const Args& how :
       {Args{}, Args{"-t", "2"}, Args{"--cpu-variant", "baseline"}, Args{"--sample", "7"}}) {
    Args all{"audit", file, "--json"};
    all.insert(all.end(), how.begin(), how.end());
    const Ran same = gimbal(all);
    EXPECT_EQ(same.code, 0) << same.out << same.err;
    EXPECT_EQ(json_of(same)["verdict"], "same");
    const bool sample = !how.empty() && how[0] == "--sample";
    EXPECT_EQ(json_of(same)["rows"], sample ? 7 : 60);
  }
  Json forged = c;
  forged["answer"]["tokens"][30] = c["answer"]["tokens"][30] == 300 ? 301 : 300;
  const std::string other = write("forged.json", forged.dump());
  const Ran different = gimbal({"audit", other});
  EXPECT_EQ(different.code, 1);
  EXPECT_SAYS(different.out, "differs at token 30 of the answer");
  // Several at once: each has a line, and the worst decides the exit code.
  const Ran both = gimbal({"audit", file, other, write("cut.json", c.dump().substr(0, 100))});
  EXPECT_EQ(both.code, 3);
  EXPECT_SAYS(both.out, file + ": same");
  EXPECT_SAYS(both.out, other + ": differs at token 30");
  EXPECT_SAYS(both.out, "cut.json: error: the certificate is no JSON object, or is cut off");
  EXPECT_EQ(gimbal({"audit", file, "--key", std::string(64, '0')}).code, 1) << "it is not signed";
  EXPECT_EQ(gimbal({"audit"}).code, 2);
  EXPECT_EQ(gimbal({"run", "-p", "x", "--certificate-private"}).code, 2) << "of which certificate?";
}

TEST(AuditCommand, APrivatePrompt) {
  const std::string file = temporary_path("private.json");
  ASSERT_EQ(gimbal({"run", "-p", "Once upon a time", "-n", "5", "--raw", "--certificate", file,
                    "--certificate-private"})
                .code,
            0);
  EXPECT_EQ(contents_of(file).find("\"tokens\":[1,"), std::string::npos);
  const Ran without = gimbal({"audit", file});
  EXPECT_EQ(without.code, 2);
  EXPECT_SAYS(without.err, "--tokens");
  std::string ids;
  const Json tokens = json_of(gimbal({"tokenize", "--text", "Once upon a time", "--json"}))["tokens"];
  for (const Json& t : tokens)
    ids += (ids.empty() ? "" : ",") + std::to_string(t.is_number() ? t.get<int>() : t["id"].get<int>());
  EXPECT_EQ(gimbal({"audit", file, "--tokens", ids}).code, 0);
}

TEST(AuditCommand, AnswersOfTheServer) {
  for (const Args& how : {Args{}, Args{"--workers", "none"}}) {
    const Serving s(how);
    const Json answer =
        s.ask("/v1/completions",
              {{"prompt", "The dog"}, {"seed", 3}, {"max_tokens", 40}, {"n", 2}, {"certificate", true}});
    const Json plain =
        s.ask("/v1/completions", {{"prompt", "The dog"}, {"seed", 3}, {"max_tokens", 40}, {"n", 2}});
    EXPECT_EQ(answer["choices"], plain["choices"]);
    const std::string receipt = s.ask(get("/v1/receipts/" + answer["id"].get<std::string>())).body;
    const std::string file = write("receipt.json", receipt);
    const Ran same = gimbal({"audit", file, "-m", "default", "--json"});
    EXPECT_EQ(same.code, 0) << same.out << same.err;
    const Json all = json_of(same);
    ASSERT_EQ(all.size(), 2u);
    for (const Json& one : all) EXPECT_EQ(one["verdict"], "same") << one;
    // With a form, and as a chat.
    const Json form = s.ask("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                                     {"max_tokens", 30},
                                                     {"certificate", true},
                                                     {"response_format", {{"type", "json_object"}}}});
    const std::string formed = s.ask(get("/v1/receipts/" + form["id"].get<std::string>())).body;
    EXPECT_FALSE(Json::parse(formed)["certificates"][0]["grammar"].get<std::string>().empty());
    const Ran checked = gimbal({"audit", write("formed.json", formed), "-m", "default"});
    EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
    EXPECT_FALSE(Json::parse(s.ask(get("/v1/receipts/" + plain["id"].get<std::string>())).body)
                     .contains("certificates"));
  }
}

}  // namespace
}  // namespace gimbal::test
