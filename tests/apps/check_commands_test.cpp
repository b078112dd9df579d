// gimbal grammar and gimbal parse-answer: tests of grammars, schemas and tool calls from outside.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/cli.h"

namespace gimbal::test {
namespace {

TEST(GrammarCommand, SaysWhetherATextMatches) {
  const std::string gbnf = "root ::= \"yes\" | \"no\" [a-z]+ \"\\n\" \"end\"";
  const std::string file = temporary_path("check.gbnf");
  ASSERT_TRUE(write_file(file, gbnf));
  for (const std::string& grammar : {gbnf, file}) {
    EXPECT_EQ(gimbal({"grammar", "--check", grammar, "--text", "yes"}).code, 0);
    const Ran stops = gimbal({"grammar", "--check", grammar, "--text", "nob\nenX"});
    EXPECT_EQ(stops.code, 1);
    EXPECT_SAYS(stops.out, "stops matching at line 2, column 3 (byte 6), before 'X'");
    const Ran early = gimbal({"grammar", "--check", grammar, "--text", "no", "--json"});
    EXPECT_EQ(early.code, 1);
    EXPECT_EQ(Json::parse(early.out),
              Json::parse(R"({"matches":false,"bytes":2,"line":1,"column":3,"incomplete":true})"));
  }
  EXPECT_EQ(gimbal({"grammar", "--schema", R"({"type":"integer","multipleOf":3})", "--text", "12"}).code, 0);
  EXPECT_EQ(gimbal({"grammar", "--schema", R"({"type":"integer","multipleOf":3})", "--text", "13"}).code, 1);
  EXPECT_EQ(gimbal({"grammar", "--schema", R"({"type":"string"})", "-i", "-"}, {.input = "\"a\""}).code, 0);
  const Ran impossible = gimbal({"grammar", "--schema", R"({"type":"string","const":1})", "--text", "1"});
  EXPECT_EQ(impossible.code, 2);
  EXPECT_SAYS(impossible.err, "no value satisfies it");
  EXPECT_EQ(gimbal({"grammar", "--text", "1"}).code, 2);
}

TEST(ParseAnswerCommand, SplitsAnAnswer) {
  const std::string file = temporary_path("calls.jinja");
  ASSERT_TRUE(write_file(file, "{%- if tools %}<tool_call>{{ call | tojson }}</tool_call>{% endif %}"));
  const Ran r = gimbal({"parse-answer", "--template", file, "--text",
                        "<think>Which?</think>I ask.<tool_call>{\"name\": \"clock\", \"arguments\": "
                        "{\"zone\": 1}}</tool_call>"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(Json::parse(r.out), Json::parse(R"({"content":"I ask.","reasoning":"Which?",
                            "tool_calls":[{"name":"clock","arguments":{"zone":1}}]})"));
  const Ran inside = gimbal({"parse-answer", "-m", "default", "--inside-reasoning", "-i", "-"},
                            {.input = "Hm.</think>Yes."});
  EXPECT_EQ(Json::parse(inside.out), Json::parse(R"({"content":"Yes.","reasoning":"Hm.","tool_calls":[]})"));
}

TEST(ParseAnswerCommand, ReadsChannels) {
  const std::string file = temporary_path("harmony.jinja");
  ASSERT_TRUE(write_file(file, "{{ '<|channel|>commentary to=functions.' }}<|message|><|call|>{{ tools }}"));
  const Ran r =
      gimbal({"parse-answer", "--template", file, "--text",
              "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes."});
  EXPECT_EQ(Json::parse(r.out)["content"], "Yes.") << r.out << r.err;
  EXPECT_EQ(Json::parse(r.out)["reasoning"], "Hm.");
}

}  // namespace
}  // namespace gimbal::test
