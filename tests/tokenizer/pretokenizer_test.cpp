// Words of every family of split expressions. The expected words were made by another engine, Python's
// `regex` module, from the expressions as they are published.
#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <set>

namespace gimbal::test {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& family, std::string_view text) {
  const SplitFamily* rules = split_family_named(family);
  if (!rules) {
    ADD_FAILURE() << family << " is not known";
    return {};
  }
  Result<Pretokenizer> pretokenizer = Pretokenizer::create(*rules);
  if (!pretokenizer) {
    ADD_FAILURE() << pretokenizer.error().message;
    return {};
  }
  Words words;
  for (std::string_view word : pretokenizer->split(text)) words.emplace_back(word);
  return words;
}

const char kText[] =
    "HelloWorld's IT'S naïveCafé  DON'T\n\n\tx=12345;//go\r\n日本語テキスト नमस्ते 3.14/ \xc2\xa0 end "
    "\xe1\xa0\x8e"
    "\xe2\x80\x83.Bla  ";

TEST(Pretokenizer, Tekken) {
  EXPECT_EQ(words_of("tekken", kText), (Words{"Hello",
                                              "World",
                                              "'s",
                                              " IT",
                                              "'S",
                                              " naïve",
                                              "Café",
                                              " ",
                                              " DON",
                                              "'T",
                                              "\n\n",
                                              "\tx",
                                              "=",
                                              "1",
                                              "2",
                                              "3",
                                              "4",
                                              "5",
                                              ";//",
                                              "go",
                                              "\r\n",
                                              "日本語テキスト",
                                              " नमस्ते",
                                              " ",
                                              "3",
                                              ".",
                                              "1",
                                              "4",
                                              "/",
                                              " \xc2\xa0",
                                              " end",
                                              " \xe1\xa0\x8e",
                                              "\xe2\x80\x83",
                                              ".Bla",
                                              "  "}));
}
TEST(Pretokenizer, Gpt4o) {
  EXPECT_EQ(words_of("gpt-4o", kText), (Words{"Hello",
                                              "World's",
                                              " IT'S",
                                              " naïve",
                                              "Café",
                                              " ",
                                              " DON'T",
                                              "\n\n",
                                              "\tx",
                                              "=",
                                              "123",
                                              "45",
                                              ";//",
                                              "go",
                                              "\r\n",
                                              "日本語テキスト",
                                              " नमस्ते",
                                              " ",
                                              "3",
                                              ".",
                                              "14",
                                              "/",
                                              " \xc2\xa0",
                                              " end",
                                              " \xe1\xa0\x8e",
                                              "\xe2\x80\x83",
                                              ".Bla",
                                              "  "}));
}
TEST(Pretokenizer, Qwen35) {
  EXPECT_EQ(words_of("qwen35", kText), (Words{"HelloWorld",
                                              "'s",
                                              " IT",
                                              "'S",
                                              " naïveCafé",
                                              " ",
                                              " DON",
                                              "'T",
                                              "\n\n",
                                              "\tx",
                                              "=",
                                              "1",
                                              "2",
                                              "3",
                                              "4",
                                              "5",
                                              ";//",
                                              "go",
                                              "\r\n",
                                              "日本語テキスト",
                                              " नमस्ते",
                                              " ",
                                              "3",
                                              ".",
                                              "1",
                                              "4",
                                              "/",
                                              " \xc2\xa0",
                                              " end",
                                              " \xe1\xa0\x8e",
                                              "\xe2\x80\x83",
                                              ".Bla",
                                              "  "}));
}
TEST(Pretokenizer, DeepSeekV3) {
  EXPECT_EQ(words_of("deepseek-v3", kText), (Words{"HelloWorld",
                                                   "'s",
                                                   " IT",
                                                   "'S",
                                                   " naïveCafé",
                                                   " ",
                                                   " DON",
                                                   "'T",
                                                   "\n\n",
                                                   "\tx",
                                                   "=",
                                                   "123",
                                                   "45",
                                                   ";//",
                                                   "go",
                                                   "\r\n",
                                                   "日本語テキスト",
                                                   " नमस्ते",
                                                   " ",
                                                   "3",
                                                   ".",
                                                   "14",
                                                   "/",
                                                   " \xc2\xa0",
                                                   " end",
                                                   " ",
                                                   "\xe1\xa0\x8e",
                                                   "\xe2\x80\x83",
                                                   ".Bla",
                                                   "  "}));
}
TEST(Pretokenizer, Default) {
  EXPECT_EQ(words_of("default", kText), (Words{"HelloWorld",
                                               "'",
                                               "s",
                                               " IT",
                                               "'",
                                               "S",
                                               " naïveCafé",
                                               " ",
                                               " DON",
                                               "'",
                                               "T",
                                               "\n\n",
                                               "\t",
                                               "x",
                                               "=",
                                               "123",
                                               "45",
                                               ";//",
                                               "go",
                                               "\r",
                                               "\n",
                                               "日本語テキスト",
                                               " नमस",
                                               "्",
                                               "त",
                                               "े",
                                               " ",
                                               "3",
                                               ".",
                                               "14",
                                               "/",
                                               " \xc2\xa0",
                                               " end",
                                               " \xe1\xa0\x8e",
                                               "\xe2\x80\x83",
                                               ".",
                                               "Bla",
                                               "  "}));
}
TEST(Pretokenizer, LlamaBpe) {
  EXPECT_EQ(words_of("llama-bpe", kText), (Words{"HelloWorld",
                                                 "'s",
                                                 " IT",
                                                 "'S",
                                                 " naïveCafé",
                                                 " ",
                                                 " DON",
                                                 "'T",
                                                 "\n\n",
                                                 "\tx",
                                                 "=",
                                                 "123",
                                                 "45",
                                                 ";//",
                                                 "go",
                                                 "\r\n",
                                                 "日本語テキスト",
                                                 " नमस",
                                                 "्त",
                                                 "े",
                                                 " ",
                                                 "3",
                                                 ".",
                                                 "14",
                                                 "/",
                                                 " \xc2\xa0",
                                                 " end",
                                                 " \xe1\xa0\x8e",
                                                 "\xe2\x80\x83",
                                                 ".Bla",
                                                 "  "}));
}

TEST(Pretokenizer, EveryFamilyKeepsEveryByte) {
  const std::string texts[] = {"", " ", kText, "\xff\xfe broken \xe2\x82 text\xf0", std::string("a\0b", 3)};
  int families = 0;
  for (const SplitFamily& rules : split_families()) {
    Result<Pretokenizer> pretokenizer = Pretokenizer::create(rules);
    ASSERT_TRUE(pretokenizer) << pretokenizer.error().message;
    for (const std::string& text : texts) {
      std::string all;
      for (std::string_view word : pretokenizer->split(text)) {
        EXPECT_FALSE(word.empty());
        all += word;
      }
      EXPECT_EQ(all, text) << rules.names;
    }
    ++families;
  }
  EXPECT_GE(families, 13);
}

TEST(Pretokenizer, EveryNameIsFoundAndListedOnce) {
  std::string list = split_family_names();
  std::set<std::string> seen;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(", ", at), list.size());
    const std::string name = list.substr(at, end - at);
    EXPECT_TRUE(seen.insert(name).second) << name << " is listed twice";
    EXPECT_NE(split_family_named(name), nullptr) << name;
    at = end + 2;
  }
  for (const char* name :
       {"gpt-2", "llama-bpe", "llama3", "llama-v3", "qwen2", "deepseek-llm", "deepseek-coder", "falcon",
        "starcoder", "refact", "command-r", "smollm", "codeshell", "phi-2", "olmo"})
    EXPECT_TRUE(seen.count(name)) << name;
  EXPECT_EQ(split_family_named("gpt"), nullptr);
  EXPECT_EQ(split_family_named(""), nullptr);
  EXPECT_EQ(split_family_named("gpt-2 phi-2"), nullptr);
}

}  // namespace
}  // namespace gimbal::test
