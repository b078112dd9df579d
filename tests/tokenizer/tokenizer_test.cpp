// Tokenizers against llama.cpp's answers for real vocabularies: ids, texts, and the bytes of every token.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "support/golden.h"
#include "support/sha256.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

constexpr TokenizeOptions kPlain{.add_bos = false, .parse_special = false};
constexpr TokenizeOptions kSpecial{.add_bos = false, .parse_special = true};
constexpr TokenizeOptions kFull{.add_bos = true, .parse_special = true};

// For some vocabularies llama.cpp's detokenizer tidies English spacing, as old versions of Hugging Face's
// library did ("it 's ?" becomes "it's?"). That changes what a model wrote, code above all, so decode() does
// not do it; the answers are compared with the same tidying done here, and nowhere else.
bool answers_are_tidied(const ReferenceVocabulary& v) {
  if (v.answers.contains("tidied")) return v.answers["tidied"].get<bool>();
  return std::set<std::string>{"gpt-2", "falcon", "starcoder", "llama-bpe"}.count(v.name);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}
std::string tidied(std::string text) {
  for (const char* mark : {"?", "!", ".", ","}) text = replaced(text, std::string(" ") + mark, mark);
  text = replaced(text, " ' ", "'");
  for (const char* end : {"'s", "'m", "'re", "'ve"}) text = replaced(text, std::string(" ") + end, end);
  return text;
}

class Golden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { all_ = reference_vocabularies(); }
  static void TearDownTestSuite() { all_.clear(); }
  static std::vector<ReferenceVocabulary> all_;
};
std::vector<ReferenceVocabulary> Golden::all_;

TEST_F(Golden, EveryVocabularyIsUsed) {
  std::set<std::string> used;
  for (const ReferenceVocabulary& v : all_) used.insert(v.answers["vocab"].get<std::string>() + ".gz");
  for (const std::string& path : golden_files("vocab", ".gz"))
    EXPECT_TRUE(used.count(std::filesystem::path(path).filename())) << path;
}

TEST_F(Golden, EveryIdAgrees) {
  int cases = 0;
  for (const ReferenceVocabulary& v : all_)
    for (const auto& c : v.answers["cases"]) {
      if (c.contains("invalid_utf8")) continue;
      SCOPED_TRACE(v.name + ", case " + c["tag"].get<std::string>());
      const std::string text = text_of(c, "text");
      EXPECT_EQ(v.tokenizer->encode(text, kPlain), ids_of(c, "ids", ""));
      EXPECT_EQ(v.tokenizer->encode(text, kSpecial), ids_of(c, "ids_parse", "ids"));
      EXPECT_EQ(v.tokenizer->encode(text, kFull), ids_of(c, "ids_full", ""));
      ++cases;
    }
  std::printf("%d cases of %zu vocabularies\n", cases, all_.size());
  EXPECT_GT(cases, 80);
}

TEST_F(Golden, EveryTextAgrees) {
  for (const ReferenceVocabulary& v : all_)
    for (const auto& c : v.answers["cases"]) {
      SCOPED_TRACE(v.name + ", case " + c["tag"].get<std::string>());
      const auto decode = [&](const char* ids, bool special) {
        const std::string text = v.tokenizer->decode(ids_of(c, ids, ""), special);
        return answers_are_tidied(v) ? tidied(text) : text;
      };
      EXPECT_EQ(decode("ids", false), text_of(c, "detok_ids"));
      EXPECT_EQ(decode("ids_full", true), text_of(c, "detok"));
      EXPECT_EQ(decode("ids_full", false), text_of(c, "detok_plain", text_of(c, "detok")));
    }
}

// WordPiece and Unigram change what they read: their texts do not come back.
bool keeps_texts(const ReferenceVocabulary& v) {
  return v.answers["type"] != "WPM" && v.answers["type"] != "UGM";
}

// Whether a text survives, apart from bytes that the vocabulary has no tokens for: those are dropped.
bool comes_back(const Tokenizer& tokenizer, const std::string& text) {
  const std::string back = tokenizer.decode(tokenizer.encode(text, kPlain));
  if (back == text) return true;
  std::string known;
  for (const char c : text)
    if (!tokenizer.encode(std::string(1, c), kPlain).empty()) known += c;
  return back == known;
}

// The reference replaces broken bytes or not, as the vocabulary goes; we keep every byte that has a token.
TEST_F(Golden, AnyBytesComeBack) {
  for (const ReferenceVocabulary& v : all_) {
    if (!keeps_texts(v)) continue;
    int invalid = 0, same = 0;
    for (const auto& c : v.answers["cases"]) {
      SCOPED_TRACE(v.name + ", case " + c["tag"].get<std::string>());
      const std::string text = text_of(c, "text");
      const std::vector<Token> ids = v.tokenizer->encode(text, kPlain);
      // SentencePiece cannot tell U+2581 in a text from a space.
      const bool ambiguous = c["tag"] == "bytetok" && v.answers["type"] == "SPM";
      EXPECT_EQ(comes_back(*v.tokenizer, text), !ambiguous);
      if (!c.contains("invalid_utf8")) continue;
      ++invalid;
      same += ids == ids_of(c, "ids", "");
    }
    std::printf("%s: invalid UTF-8: %d of %d cases have the reference's ids\n", v.name.c_str(), same,
                invalid);
  }
}

TEST_F(Golden, EveryPieceAgrees) {
  for (const ReferenceVocabulary& v : all_)
    for (const bool special : {true, false}) {
      SCOPED_TRACE(v.name);
      std::string all;
      for (Token id = 0; id < v.tokenizer->size(); ++id) {
        const std::string piece = v.tokenizer->piece(id, special);
        const uint32_t size = uint32_t(piece.size());
        all.append(reinterpret_cast<const char*>(&size), sizeof size).append(piece);
      }
      EXPECT_EQ(sha256(all),
                v.answers[special ? "pieces_sha256" : "pieces_sha256_nospecial"].get<std::string>());
    }
}

TEST_F(Golden, TheSpecialIdsAgree) {
  for (const ReferenceVocabulary& v : all_) {
    SCOPED_TRACE(v.name);
    EXPECT_EQ(v.tokenizer->size(), v.answers["n_vocab"].get<int>());
    EXPECT_EQ(v.tokenizer->bos(), v.answers["bos"].get<Token>());
    EXPECT_EQ(v.tokenizer->eos(), v.answers["eos"].get<Token>());
    EXPECT_EQ(v.tokenizer->adds_bos(), v.answers["add_bos"].get<bool>());
    std::vector<Token> stops;
    for (Token id = 0; id < v.tokenizer->size(); ++id)
      if (v.tokenizer->is_stop(id)) stops.push_back(id);
    EXPECT_EQ(stops, v.answers["eog"].get<std::vector<Token>>());
    std::printf("%s: %s\n", v.name.c_str(), v.tokenizer->describe().c_str());
  }
}

// Long texts of one kind are where quadratic algorithms show: this test then takes hours.
TEST_F(Golden, LongTextsOfAnyKindComeBack) {
  const size_t kBytes = fewer_cases() ? 1 << 14 : 1 << 16;
  std::vector<std::string> texts;
  for (const char* unit : {" ", "a", "A", "\n", " \n", "7", "ab", "<", "<|", "'", "\xe4\xb8\x96", "\xff",
                           "\t ", "a b", "</s", "[PAD", "\xcc\x81"}) {
    std::string text;
    while (text.size() < kBytes) text += unit;
    texts.push_back(text + "x");
    texts.push_back("x" + text);
  }
  for (const ReferenceVocabulary& v : all_)
    for (const std::string& text : texts) {
      if (keeps_texts(v)) EXPECT_TRUE(comes_back(*v.tokenizer, text)) << v.name << " " << text.substr(0, 8);
      else EXPECT_FALSE(v.tokenizer->encode(text).empty());
    }
}

}  // namespace
}  // namespace gimbal::test
