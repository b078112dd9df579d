// Reasoning and answer are told apart wherever the stream is cut.
#include "chat/reasoning.h"

#include <gtest/gtest.h>

#include <vector>

namespace gimbal::test {
namespace {

struct Expected {
  const char* text;
  bool inside;
  const char *reasoning, *answer;
};

TEST(Reasoning, IsFoundWhereverTheStreamIsCut) {
  const Expected kCases[] = {
      {"<think>\nso\n</think>\n\nyes", false, "so\n", "yes"},
      {"plain answer", false, "", "plain answer"},
      {"  \n<think>a</think>b", false, "a", "b"},
      {"so</think>yes", true, "so", "yes"},
      {"never ends", true, "never ends", ""},
      {"<think>cut </thi", false, "cut </thi", ""},
      {"<thin", false, "", "<thin"},
      {"<thinking> no tag", false, "", "<thinking> no tag"},
      {"a <think>late</think>", false, "", "a <think>late</think>"},
      {"<think></think>x", false, "", "x"},
      {"a < b </ c </think>d", true, "a < b </ c ", "d"},
      {"", false, "", ""},
  };
  for (const Expected& e : kCases) {
    const std::string_view text = e.text;
    for (size_t size = 1; size <= text.size() + 1; size++) {
      ReasoningSplitter s(e.inside);
      std::string reasoning, answer;
      const auto take = [&](const ReasoningSplitter::Part& p) {
        reasoning += p.reasoning, answer += p.answer;
      };
      for (size_t at = 0; at < text.size(); at += size) take(s.push(text.substr(at, size)));
      take(s.finish());
      EXPECT_EQ(reasoning, e.reasoning) << text << " in pieces of " << size;
      EXPECT_EQ(answer, e.answer) << text << " in pieces of " << size;
      EXPECT_EQ(s.reasoning(), reasoning);
      EXPECT_EQ(s.answer(), answer);
    }
  }
}

TEST(Reasoning, AContinuedAnswerKeepsItsSpaces) {
  for (const bool continues : {false, true}) {
    ReasoningSplitter s(false, continues);
    std::string answer = s.push(" She").answer;
    answer += s.push(" loved").answer + s.finish().answer;
    EXPECT_EQ(answer, continues ? " She loved" : "She loved");
  }
  ReasoningSplitter thinks(false, true);
  EXPECT_EQ(thinks.push("<think> Hm.</think>").reasoning, "Hm.");
}

// Control tokens in angle brackets, which are never cut; the text between them is.
TEST(Reasoning, IsAllThatIsNotInTheFinalChannel) {
  const Expected kCases[] = {
      {"<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>yes", false, "so",
       "yes"},
      {"<|channel|>final<|message|>yes <think>no tag</think>", false, "", "yes <think>no tag</think>"},
      {"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|>"
       "<|start|>assistant<|channel|>final<|message|>c",
       false, "a\n\nb", "c"},
      {"<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}", false, "{}", ""},
      {"<|channel|>analysis<|message|>cut", false, "cut", ""},
      {"<|channel|>anal", false, "", ""},
      {"<|message|>no channel", false, "", "no channel"},
      {"<|end|><|start|>assistant<|message|>no channel", false, "", "no channel"},
      {"plain<|other|> text", false, "", "plain text"},
      {"<|think|>", false, "", ""},
  };
  for (const Expected& e : kCases) {
    const std::string_view text = e.text;
    for (size_t size = 1; size <= text.size(); size++) {
      ReasoningSplitter s(e.inside);
      std::string reasoning, answer;
      const auto take = [&](const ReasoningSplitter::Part& p) {
        reasoning += p.reasoning, answer += p.answer;
      };
      for (size_t at = 0; at < text.size();) {
        const size_t open = std::min(text.find("<|", at), text.size());
        if (open == at) {
          const size_t end = text.find("|>", at) + 2;
          take(s.control(text.substr(at, end - at)));
          at = end;
        } else {
          const size_t n = std::min(size, open - at);
          take(s.push(text.substr(at, n)));
          at += n;
        }
      }
      take(s.finish());
      EXPECT_EQ(reasoning, e.reasoning) << text << " in pieces of " << size;
      EXPECT_EQ(answer, e.answer) << text << " in pieces of " << size;
      EXPECT_EQ(s.reasoning(), reasoning);
      EXPECT_EQ(s.answer(), answer);
    }
  }
}

// Letters that a model writes are no control tokens; tags that are control tokens are tags.
TEST(Reasoning, ChannelsAreMadeOfControlTokensAlone) {
  ReasoningSplitter s(false);
  s.push("<|channel|>analysis<|message|>quoted");
  s.finish();
  EXPECT_EQ(s.answer(), "<|channel|>analysis<|message|>quoted");
  ReasoningSplitter tags(false);
  tags.control("<think>"), tags.push("a"), tags.control("</think>"), tags.push("b");
  EXPECT_EQ(tags.reasoning(), "a");
  EXPECT_EQ(tags.answer(), "b");
}

}  // namespace
}  // namespace gimbal::test
