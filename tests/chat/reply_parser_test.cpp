// Answers that are split into text, reasoning and calls: the same however they are cut.
#include "chat/reply_parser.h"

#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

class ReplyParserTest : public ::testing::Test {
 protected:
  ReplyParserTest() : file_(*open_gguf(golden_dir() + "/stories/stories260K-f32.gguf")) {
    tokenizer_ = *Tokenizer::create(file_.metadata());
    task_.form.calls = {ToolCallFormat::Kind::Marked, "<tool_call>", "</tool_call>"};
  }

  // All parts of an answer that comes in pieces of so many bytes.
  ReplyParser::Part parse(std::string_view answer, size_t bytes) {
    ReplyParser parser(*tokenizer_, task_);
    ReplyParser::Part all;
    const auto add = [&](ReplyParser::Part p) {
      all.text += p.text, all.reasoning += p.reasoning;
      all.calls.insert(all.calls.end(), p.calls.begin(), p.calls.end());
    };
    for (; answer.size() > bytes; answer.remove_prefix(bytes)) add(parser.push(answer.substr(0, bytes), -1));
    add(parser.finish(answer));
    enough_ = parser.enough();
    return all;
  }

  ModelSource file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTask task_{};
  bool enough_ = false;
};

constexpr const char* kCall = R"(<tool_call>{"name": "clock", "arguments": {"zone": 1}}</tool_call>)";
constexpr const char* kOther = R"(<tool_call>{"name": "alarm", "arguments": {}}</tool_call>)";

TEST_F(ReplyParserTest, SplitsAnAnswer) {
  const std::string answer = std::string("<think>Which hour?</think>I ask.") + kCall + kOther;
  for (size_t bytes : {1u, 2u, 7u, 1000u}) {
    const auto all = parse(answer, bytes);
    EXPECT_EQ(all.text, "I ask.") << bytes;
    EXPECT_EQ(all.reasoning, "Which hour?") << bytes;
    ASSERT_EQ(all.calls.size(), 2u) << bytes;
    EXPECT_EQ(all.calls[0].name, "clock");
    EXPECT_EQ(all.calls[1].name, "alarm");
    EXPECT_FALSE(enough_);
  }
}

// Also where the prompt has opened it, or a call comes at once.
TEST_F(ReplyParserTest, ReasoningMayStayInTheText) {
  task_.keeps_reasoning = true;
  for (size_t bytes : {1u, 2u, 7u, 1000u}) {
    const auto all = parse(std::string("<think>Which hour?</think>I ask.") + kCall, bytes);
    EXPECT_EQ(all.text, "<think>Which hour?</think>\n\nI ask.") << bytes;
    EXPECT_EQ(all.reasoning, "") << bytes;
    EXPECT_EQ(all.calls.size(), 1u) << bytes;
    EXPECT_EQ(parse(std::string("<think>So</think>") + kCall, bytes).text, "<think>So</think>\n\n") << bytes;
    EXPECT_EQ(parse("Yes.", bytes).text, "Yes.") << bytes;
    EXPECT_EQ(parse("<think>Hm", bytes).text, "<think>Hm") << "cut off";
  }
  task_.opens_reasoning = true;
  EXPECT_EQ(parse("So.</think>Yes", 1).text, "<think>So.</think>\n\nYes");
}

TEST_F(ReplyParserTest, OneCallIsEnough) {
  task_.one_call = true;
  for (size_t bytes : {1u, 30u, 1000u}) {
    const auto all = parse(std::string(kCall) + kOther + "more", bytes);
    ASSERT_EQ(all.calls.size(), 1u) << bytes;
    EXPECT_EQ(all.calls[0].name, "clock");
    EXPECT_TRUE(enough_);
  }
}

// The end of an answer ends a call, too, and so may give a second one.
TEST_F(ReplyParserTest, ACallThatTheEndCutsOffIsNoSecondOne) {
  const std::string open = kOther, cut = open.substr(0, open.rfind("</tool_call>"));
  for (const bool one : {true, false}) {
    task_.one_call = one;
    ReplyParser parser(*tokenizer_, task_);
    const auto first = parser.push(kCall + cut, -1), rest = parser.finish("");
    ASSERT_EQ(first.calls.size(), 1u);
    EXPECT_EQ(first.calls[0].name, "clock");
    EXPECT_EQ(rest.calls.size(), one ? 0u : 1u);
  }
}

TEST_F(ReplyParserTest, ThePromptMayBeginTheAnswer) {
  task_.opens_reasoning = true;
  EXPECT_EQ(parse("So.</think>Yes", 1).reasoning, "So.");
  EXPECT_EQ(parse("So.</think>Yes", 1).text, "Yes");
  task_.opens_reasoning = false;
  task_.begun = tokenizer_->encode("<tool_call>", {.add_bos = false, .parse_special = true});
  const auto all = parse(std::string_view(kCall).substr(11), 3);
  EXPECT_EQ(all.text, "") << "the beginning is not reported";
  ASSERT_EQ(all.calls.size(), 1u);
  EXPECT_EQ(all.calls[0].name, "clock");
}

TEST_F(ReplyParserTest, WithoutToolsACallIsText) {
  task_.form.calls.reset();
  EXPECT_EQ(parse(kCall, 5).text, kCall);
}

}  // namespace
}  // namespace gimbal::test
