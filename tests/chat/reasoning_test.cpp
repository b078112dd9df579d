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
      {"<|channel|>analysis<|message|>a </think> b <thi<|end|><|start|>assistant<|channel|>final<|message|>c",
       false, "a </think> b <thi", "c"},
      {"<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>final<|message|> b", false, "",
       "a\n\n b"},
      {"<think>a </th<|end|><|start|>assistant<|message|>b", false, "a </th", "b"},
      {" <thi<|start|>assistant<|message|>b", false, "", "<thi\n\nb"},
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

// What cannot be part of a tag is given at once; and in channels, where tags are none, all is.
TEST(Reasoning, OnlyWhatMayBeATagWaits) {
  ReasoningSplitter s(false);
  EXPECT_EQ(s.push(" <thi").answer, "");
  EXPECT_FALSE(s.inside());
  EXPECT_EQ(s.push("nk>").reasoning, "");
  EXPECT_TRUE(s.inside());
  EXPECT_EQ(s.push(" a <").reasoning, "a ");
  EXPECT_EQ(s.push("/think").reasoning, "");
  EXPECT_EQ(s.push("x").reasoning, "</thinkx");
  const auto both = s.push("y</think>\n\nz <");
  EXPECT_EQ(both.reasoning, "y");
  EXPECT_EQ(both.answer, "z <");
  EXPECT_FALSE(s.inside());
  ReasoningSplitter channels(false);
  channels.control("<|channel|>"), channels.push("analysis"), channels.control("<|message|>");
  EXPECT_TRUE(channels.inside());
  EXPECT_EQ(channels.push("a </thin").reasoning, "a </thin");
  channels.control("<|end|>");
  EXPECT_EQ(channels.push("assistant").reasoning, "") << "a role";
}

// The marks for the limit of the runtime: what begins, ends and cuts short the reasoning.
TEST(Reasoning, MarksOfALimit) {
  struct {
    bool inside = false;
    std::string begin, end, finish;
  } limit;
  set_reasoning_marks(limit, false, true);
  EXPECT_TRUE(limit.inside);
  EXPECT_EQ(limit.begin + " " + limit.end + " " + limit.finish, "<think> </think> </think>\n\n");
  set_reasoning_marks(limit, true, false);
  EXPECT_FALSE(limit.inside);
  EXPECT_EQ(limit.begin, "<|channel|>analysis<|message|>");
  EXPECT_EQ(limit.end, "<|end|>");
  EXPECT_EQ(limit.finish, "<|end|><|start|>assistant<|channel|>final<|message|>");
  // The splitter reads them as what they are.
  ReasoningSplitter s(false);
  std::string text = limit.begin + "so" + limit.finish + "yes";
  while (!text.empty()) {
    const size_t end = text.starts_with("<|") ? text.find("|>") + 2 : std::min(text.find("<|"), text.size());
    if (text.starts_with("<|")) s.control(text.substr(0, end));
    else s.push(text.substr(0, end));
    text.erase(0, end);
  }
  EXPECT_EQ(s.reasoning() + "|" + s.answer(), "so|yes");
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
