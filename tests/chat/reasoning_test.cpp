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

}  // namespace
}  // namespace gimbal::test
