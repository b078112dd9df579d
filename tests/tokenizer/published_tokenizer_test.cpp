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
