// Words of every family of split expressions. The expected words were made by another engine, Python's
// `regex` module, from the expressions as they are published.
#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_GE(families, 30);
}

// All the names that llama.cpp v0.5.0 knows.
TEST(Pretokenizer, EveryNameIsFoundAndListedOnce) {
  const std::vector<std::string> list = split_family_names();
  const std::set<std::string> seen(list.begin(), list.end());
  EXPECT_EQ(seen.size(), list.size()) << "a name is listed twice";
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
  for (const std::string& name : list) EXPECT_NE(split_family_named(name), nullptr) << name;
  for (const char* name : {"a.x-4.0",
                           "afmoe",
                           "bailingmoe",
                           "bailingmoe2",
                           "bloom",
                           "chameleon",
                           "chatglm-bpe",
                           "codeshell",
                           "cohere2moe",
                           "command-r",
                           "dbrx",
                           "deepseek-coder",
                           "deepseek-llm",
                           "deepseek-r1-qwen",
                           "deepseek-v3",
                           "default",
                           "exaone",
                           "exaone-moe",
                           "exaone4",
                           "f2llmv2",
                           "falcon",
                           "falcon-h1",
                           "falcon3",
                           "gemma4",
                           "gigachat",
                           "glm4",
                           "gpt-2",
                           "gpt-4o",
                           "gpt3-finnish",
                           "granite-docling",
                           "granite-embed-multi-311m",
                           "granite-embed-multi-97m",
                           "grok-2",
                           "hunyuan",
                           "hunyuan-dense",
                           "hy_v4",
                           "jais",
                           "jais-2",
                           "jina-de",
                           "jina-es",
                           "jina-v1-en",
                           "jina-v2-code",
                           "jina-v2-de",
                           "jina-v2-es",
                           "jina-v5-nano",
                           "joyai-llm",
                           "kanana2",
                           "kimi-k2",
                           "kormo",
                           "laguna",
                           "lfm2",
                           "llada-moe",
                           "llama-bpe",
                           "llama-v3",
                           "llama3",
                           "llama4",
                           "megrez",
                           "mellum",
                           "mellum2",
                           "midm-2.0",
                           "minerva-7b",
                           "minicpm5",
                           "minimax-m2",
                           "modern-bert",
                           "mpt",
                           "olmo",
                           "phi-2",
                           "pixtral",
                           "poro-chat",
                           "qwen2",
                           "qwen35",
                           "refact",
                           "roberta-bpe",
                           "sarvam-moe",
                           "seed-coder",
                           "smaug-bpe",
                           "smollm",
                           "solar-open",
                           "spark2_5",
                           "stablelm2",
                           "starcoder",
                           "superbpe",
                           "talkie",
                           "tekken",
                           "tiny_aya",
                           "trillion",
                           "ufakzeka",
                           "viking",
                           "whitespace",
                           "youtu"})
    EXPECT_TRUE(seen.count(name)) << name;
  EXPECT_EQ(split_family_named("gpt"), nullptr);
  EXPECT_EQ(split_family_named(""), nullptr);
  EXPECT_EQ(split_family_named("gpt-2 phi-2"), nullptr);
}

// Digits in groups of three from the right, by three rules.
TEST(Pretokenizer, GroupsOfDigits) {
  EXPECT_EQ(words_of("afmoe", "1234567a 12 123x"),
            (Words{"1", "234", "567", "a", " ", "12", " ", "123", "x"}));
  EXPECT_EQ(words_of("tiny_aya", "1234567 1234a 123"),  // a letter follows: not grouped from the right
            (Words{"1", "234", "567", " ", "123", "4", "a", " ", "123"}));
  EXPECT_EQ(words_of("superbpe", "1234567 123456 12"),
            (Words{"1", "234", "567", " ", "123", "456", " ", "12"}));
}

TEST(Pretokenizer, KimisWordsEndAtHanCharacters) {
  EXPECT_EQ(words_of("kimi-k2", "Hello世界World's1234"), (Words{"Hello", "世界", "World's", "123", "4"}));
}

TEST(Pretokenizer, MatchesLeaveOutWhatLiesBetween) {
  Result<Pretokenizer> p = Pretokenizer::create({"test", {R"(\S+)"}});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->matches(" a \u3000 bc\n"), (std::vector<std::string_view>{"a", "bc"}));
  EXPECT_TRUE(p->matches("").empty());
}

// Runs of 2^16 characters of one kind take quadratic time where an expression goes back over all of them.
TEST(Pretokenizer, LongRunsAreCutByEveryFamily) {
  for (const SplitFamily& rules : split_families()) {
    Result<Pretokenizer> pretokenizer = Pretokenizer::create(rules);
    ASSERT_TRUE(pretokenizer);
    for (const char* unit : {"7", " ", "\n", "a", "A", "'", "\u4e16", "\u0301", "a\u0301"}) {
      std::string text;
      while (text.size() < 1 << 16) text += unit;
      size_t bytes = 0;
      for (std::string_view word : pretokenizer->split(text + "x")) bytes += word.size();
      EXPECT_EQ(bytes, text.size() + 1) << rules.names;
    }
  }
}

}  // namespace
}  // namespace gimbal::test
