// Tokenizers of every kind that tokenizer.json knows, trained on a few lines by the `tokenizers` library
// (0.22.2), and the ids that it gives for texts that are chosen to be difficult. Made by
// scripts/oracle/published_tokenizers.py.
#include <gtest/gtest.h>

#include "base/json.h"
#include "huggingface/metadata_builder.h"
#include "huggingface/tokenizer_json.h"
#include "support/golden.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode_forms.h"
#include "tokenizer/word_splitter.h"

namespace gimbal::test {
namespace {

Result<std::unique_ptr<Tokenizer>> published(const std::string& json) {
  MetadataBuilder out("published");
  if (auto ok = add_tokenizer({"published", json, {}, {}, {}}, ModelConfig(Json::object(), "none"), 0, out);
      !ok)
    return ok.error();
  return Tokenizer::create(out.metadata());
}

TEST(PublishedTokenizer, IdsAreThoseOfTheTokenizersLibrary) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  EXPECT_GE(all.size(), 10u);
  for (const auto& [name, one] : all.items()) {
    SCOPED_TRACE(name);
    const auto tokenizer = published(one["tokenizer"].dump());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    for (const auto& c : one["cases"]) {
      const std::string text = c["text"];
      EXPECT_EQ((*tokenizer)->encode(text, {.add_bos = false}), c["ids"].get<std::vector<Token>>()) << text;
      EXPECT_EQ((*tokenizer)->encode(text), c["ids_full"].get<std::vector<Token>>()) << text;
    }
  }
}

// User input within a prompt never becomes a control token, whatever it says.
TEST(PublishedTokenizer, PlainRangesHaveNoControlTokens) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  const auto tokenizer = published(all["roberta"]["tokenizer"].dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string text = "<s>a<s></s>b</s>";
  const std::vector<TextRange> plain = {{4, 12}};
  const auto ids = (*tokenizer)->encode(text, {.add_bos = false, .plain = plain});
  int control = 0;
  for (Token id : ids) control += (*tokenizer)->is_control(id);
  EXPECT_EQ(control, 2);
  for (Token id : (*tokenizer)->encode(text, {.add_bos = false, .parse_special = false}))
    EXPECT_FALSE((*tokenizer)->is_control(id));
}

// Added tokens that are not special are found in any text; special ones only where control tokens may be,
// whether they are looked for before or behind the normalizer.
TEST(PublishedTokenizer, AddedTokensThatAreNotSpecialAreFoundInPlainText) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  auto json = all["llama3-nfc"]["tokenizer"];
  Token a = -1, s = -1;
  for (auto& t : json["added_tokens"]) {
    if (t["content"] == "<a>") a = t["id"];
    if (t["content"] == "<s>") s = t["id"], t["normalized"] = true;
  }
  ASSERT_GE(a, 0);
  ASSERT_GE(s, 0);
  const auto tokenizer = published(json.dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string text = "x<a>y<s>";
  const std::vector<TextRange> plain = {{0, text.size()}};
  const auto counts = [&](const TokenizeOptions& options) {
    const auto ids = (*tokenizer)->encode(text, options);
    return std::pair(std::count(ids.begin(), ids.end(), a), std::count(ids.begin(), ids.end(), s));
  };
  EXPECT_EQ(counts({.add_bos = false}), std::pair(1l, 1l));
  EXPECT_EQ(counts({.add_bos = false, .parse_special = false}), std::pair(1l, 0l));
  EXPECT_EQ(counts({.add_bos = false, .plain = plain}), std::pair(1l, 0l));
}

TEST(PublishedTokenizer, OddDecodersAreReadWithoutAnException) {
  auto json = read_json(std::string(GIMBAL_SOURCE_DIR) +
                        "/tests/data/peer/published_tokenizers.json")["roberta"]["tokenizer"];
  for (const char* decoder :
       {R"({"type":"Strip","start":"x"})", R"({"type":"Strip","start":-1})", R"({"type":"Strip"})",
        R"({"type":5})", R"({"type":"Sequence","decoders":5})", R"({"type":"Sequence","decoders":[5]})",
        R"({"type":"Replace","content":" ","pattern":5})", "5", "null"}) {
    json["decoder"] = Json::parse(decoder);
    EXPECT_NO_THROW((void)published(json.dump())) << decoder;
  }
}

// "split" of Metaspace: no token goes over the beginning of a word, even if a longer one would be better.
TEST(PublishedTokenizer, MetaspaceCutsBeforeEachWord) {
  const auto ids = [](bool split, const std::string& text) {
    const nlohmann::ordered_json json = {
        {"model",
         {{"type", "Unigram"},
          {"unk_id", 0},
          {"vocab", nlohmann::ordered_json::array({{"<unk>", 0.0},
                                                   {"\u2581a", -2.0},
                                                   {"\u2581b", -2.0},
                                                   {"\u2581a\u2581b", -1.0},
                                                   {"\u2581", -3.0}})}}},
        {"pre_tokenizer",
         {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}, {"split", split}}}};
    const auto tokenizer = published(json.dump());
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    return tokenizer ? (*tokenizer)->encode(text, {.add_bos = false}) : std::vector<Token>();
  };
  EXPECT_EQ(ids(true, "a b a"), (std::vector<Token>{1, 2, 1}));
  EXPECT_EQ(ids(true, "a  b"), (std::vector<Token>{1, 4, 2}));
  EXPECT_EQ(ids(false, "a b a"), (std::vector<Token>{3, 1}));
}

// A character without a token becomes its bytes, between the tokens of its neighbours.
TEST(PublishedTokenizer, UnigramFallsBackToBytes) {
  const nlohmann::ordered_json json = {
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 0},
        {"byte_fallback", true},
        {"vocab", nlohmann::ordered_json::array(
                      {{"<unk>", 0.0}, {"a", -1.0}, {"bb", -1.0}, {"<0xC3>", -5.0}, {"<0xA9>", -5.0}})}}}};
  const auto tokenizer = published(json.dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto ids = [&](const char* text) { return (*tokenizer)->encode(text, {.add_bos = false}); };
  EXPECT_EQ(ids("\u00e9bb"), (std::vector<Token>{3, 4, 2}));
  EXPECT_EQ(ids("a\u00e9bb"), (std::vector<Token>{1, 3, 4, 2}));
  EXPECT_EQ(ids("\u00e9a\u00e9"), (std::vector<Token>{3, 4, 1, 3, 4}));
  EXPECT_EQ(ids("bb\u00e9a\u00e9\u00e9a"), (std::vector<Token>{2, 3, 4, 1, 3, 4, 3, 4, 1}));
  EXPECT_EQ(ids("\u00e9\u00e9a\u00e9bb"), (std::vector<Token>{3, 4, 3, 4, 1, 3, 4, 2}));
  EXPECT_EQ(ids("a\u00eabb"), (std::vector<Token>{1, 0, 2}));  // U+00EA is C3 AA
}

// With "invert", what the expression finds is no match: two finds side by side are two words, and a match
// goes to what stands before it.
TEST(PublishedTokenizer, MatchesAreMergedAsTheLibraryMergesThem) {
  const auto words = [](const char* behavior, bool invert) {
    const auto splitter = WordSplitter::create(
        {{"type", "Split"}, {"pattern", {{"Regex", "[0-9]"}}}, {"behavior", behavior}, {"invert", invert}});
    EXPECT_TRUE(splitter) << splitter.error().message;
    std::vector<std::string> all;
    if (splitter) splitter->split("a12b3", true, [&](std::string_view w) { all.emplace_back(w); });
    return all;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("MergedWithPrevious", true), (Words{"a", "1", "2b", "3"}));
  EXPECT_EQ(words("MergedWithPrevious", false), (Words{"a1", "2", "b3"}));
  EXPECT_EQ(words("MergedWithNext", true), (Words{"a1", "2", "b3"}));
  EXPECT_EQ(words("MergedWithNext", false), (Words{"a", "1", "2b", "3"}));
  EXPECT_EQ(words("Contiguous", false), (Words{"a", "12", "b", "3"}));
  EXPECT_EQ(words("Isolated", true), (Words{"a", "1", "2", "b", "3"}));
  EXPECT_EQ(words("Removed", true), (Words{"1", "2", "3"}));
}

TEST(PublishedTokenizer, ADelimiterIsNoWord) {
  const auto splitter = WordSplitter::create({{"type", "CharDelimiterSplit"}, {"delimiter", "-"}});
  ASSERT_TRUE(splitter) << splitter.error().message;
  std::vector<std::string> words;
  splitter->split("-a-b c--d", true, [&](std::string_view w) { words.emplace_back(w); });
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b c", "d"}));
}

// Llama 3's files have their template within a sequence.
TEST(PublishedTokenizer, PostProcessorsInASequence) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  auto json = all["roberta"]["tokenizer"];
  const nlohmann::ordered_json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}},
                               around = json["post_processor"];
  json["post_processor"] = {{"type", "Sequence"},
                            {"processors", nlohmann::ordered_json::array({byte_level, around})}};
  const auto tokenizer = published(json.dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const auto& c : all["roberta"]["cases"])
    EXPECT_EQ((*tokenizer)->encode(c["text"].get<std::string>()), c["ids_full"].get<std::vector<Token>>())
        << c["text"];
  json["post_processor"]["processors"].push_back({{"type", "Braces"}});
  const auto unknown = published(json.dump());
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("'Braces'"), std::string::npos) << unknown.error().message;
}

// ByteLevel(add_prefix_space=True) is the library's default.
TEST(PublishedTokenizer, ByteLevelPutsASpaceBeforeATextUnlessToldNotTo) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  auto json = all["roberta"]["tokenizer"];
  ASSERT_TRUE(json["pre_tokenizer"]["add_prefix_space"].get<bool>());
  json["pre_tokenizer"].erase("add_prefix_space");
  const auto tokenizer = published(json.dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const auto& c : all["roberta"]["cases"])
    EXPECT_EQ((*tokenizer)->encode(c["text"].get<std::string>(), {.add_bos = false}),
              c["ids"].get<std::vector<Token>>())
        << c["text"];
}

TEST(PublishedTokenizer, RulesThatAreNotKnownAreRefused) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  const auto with = [&](const char* part, const nlohmann::ordered_json& value) {
    auto json = all["gpt2"]["tokenizer"];
    json[part] = value;
    const auto tokenizer = published(json.dump());
    return tokenizer ? std::string("none") : tokenizer.error().message;
  };
  const auto type = [](const char* name) { return nlohmann::ordered_json{{"type", name}}; };
  EXPECT_NE(with("normalizer", type("Reverse")).find("'Reverse'"), std::string::npos);
  EXPECT_NE(with("pre_tokenizer", type("UnicodeScripts")).find("'UnicodeScripts'"), std::string::npos);
  EXPECT_NE(with("post_processor", type("Braces")).find("'Braces'"), std::string::npos);
  EXPECT_NE(
      with("pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}})
          .find("not understood"),
      std::string::npos);
  EXPECT_NE(with("post_processor", {{"type", "BertProcessing"}, {"cls", {"a", 99999}}, {"sep", {"b", 1}}})
                .find("'cls'"),
            std::string::npos);
}

// An expression that goes back over the text without end stops, and the rest is one word.
TEST(PublishedTokenizer, ExpressionsAreBounded) {
  const auto all = read_json(std::string(GIMBAL_SOURCE_DIR) + "/tests/data/peer/published_tokenizers.json");
  auto json = all["gpt2"]["tokenizer"];
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$b"}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  const auto tokenizer = published(json.dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_FALSE((*tokenizer)->encode(std::string(60, 'a') + "c").empty());
}

TEST(PublishedTokenizer, UnicodeFormsAreThoseOfTheStandard) {
  const UnicodeForms forms;
  const auto nfc = [&](const char* s) { return forms.normalized(s, UnicodeForm::NFC); };
  EXPECT_EQ(nfc("e\xcc\x81"), "\xc3\xa9");
  EXPECT_EQ(nfc("q\xcc\x87\xcc\xa3"), "q\xcc\xa3\xcc\x87");                // ordered by class
  EXPECT_EQ(nfc("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8"), "\xea\xb0\x81");  // Hangul
  EXPECT_EQ(nfc("e\xcc\x85\xcc\x81"), "e\xcc\x85\xcc\x81");    // a mark of the same class is in between
  EXPECT_EQ(nfc("\xe2\x84\xab"), "\xc3\x85");                  // the sign for angstroms
  EXPECT_EQ(nfc("\xe0\xa5\x98"), "\xe0\xa4\x95\xe0\xa4\xbc");  // excluded from composition
  EXPECT_EQ(forms.normalized("\xef\xac\x81\xc2\xbd", UnicodeForm::NFKC),
            "fi1\xe2\x81\x84"
            "2");
  EXPECT_EQ(forms.normalized("\xea\xb0\x81", UnicodeForm::NFD), "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8");
  EXPECT_EQ(nfc("a\xff"
                "e\xcc\x81\xcc"),
            "a\xff\xc3\xa9\xcc")
      << "bytes that are no UTF-8 stay";
}

}  // namespace
}  // namespace gimbal::test
