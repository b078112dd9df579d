// Streams of tokens: whole characters only, nothing lost, U+FFFD for what cannot become a character.
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/vocabularies.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::test {
namespace {

// Tokens are bytes, so that every cut of a text can be made; 256 is a control token.
class BytesTokenizer final : public Tokenizer {
 public:
  std::vector<Token> encode(std::string_view text, TokenizeOptions) const override {
    return {reinterpret_cast<const uint8_t*>(text.data()),
            reinterpret_cast<const uint8_t*>(text.data()) + text.size()};
  }
  std::string piece(Token id, bool special) const override {
    return id == 256 ? special ? "<end>" : "" : std::string(1, char(id));
  }
  std::string decode(std::span<const Token> ids, bool special) const override {
    std::string text;
    for (Token id : ids) text += piece(id, special);
    return text;
  }
  int size() const override { return 257; }
  Token bos() const override { return -1; }
  Token eos() const override { return 256; }
  bool adds_bos() const override { return false; }
  bool is_stop(Token id) const override { return id == 256; }
  bool is_control(Token id) const override { return id == 256; }
  std::string describe() const override { return "bytes"; }
};

std::vector<std::string> pushed(std::string_view bytes) {
  const BytesTokenizer tokenizer;
  StreamDecoder stream(tokenizer);
  std::vector<std::string> pieces;
  for (Token id : tokenizer.encode(bytes, {})) pieces.push_back(stream.push(id));
  pieces.push_back(stream.finish());
  return pieces;
}
std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& p : pieces) text += p;
  return text;
}
using Pieces = std::vector<std::string>;
const std::string kReplacement = "\xef\xbf\xbd";

TEST(StreamDecoder, HoldsBackUntilACharacterIsWhole) {
  EXPECT_EQ(pushed("a\xc3\xa9"), (Pieces{"a", "", "\xc3\xa9", ""}));
  EXPECT_EQ(pushed("\xe2\x82\xac"), (Pieces{"", "", "\xe2\x82\xac", ""}));
  EXPECT_EQ(pushed("\xf0\x9f\x98\x80"), (Pieces{"", "", "", "\xf0\x9f\x98\x80", ""}));
}

TEST(StreamDecoder, AnUnfinishedCharacterEndsAsOneReplacement) {
  EXPECT_EQ(pushed("a\xc3"), (Pieces{"a", "", kReplacement}));
  EXPECT_EQ(pushed("\xf0\x9f\x98"), (Pieces{"", "", "", kReplacement}));
  EXPECT_EQ(pushed(""), (Pieces{""}));
}

// The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11.
TEST(StreamDecoder, EachMaximalSubpartBecomesOneReplacement) {
  const auto text = [](int replacements, const char* end) {
    std::string s;
    for (int i = 0; i < replacements; ++i) s += kReplacement;
    return s + end;
  };
  EXPECT_EQ(joined(pushed("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41")), text(8, "A"));
  EXPECT_EQ(joined(pushed("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41")), text(8, "A"));
  EXPECT_EQ(joined(pushed("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42")), text(5, "A") + text(2, "B"));
  EXPECT_EQ(joined(pushed("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41")), text(4, "A"));
}

TEST(StreamDecoder, ABrokenCharacterDoesNotSwallowTheNextOne) {
  EXPECT_EQ(pushed("\xe2\x82z"), (Pieces{"", "", kReplacement + "z", ""}));
}

TEST(StreamDecoder, ControlTokensShowOnlyWhenAskedFor) {
  const BytesTokenizer tokenizer;
  StreamDecoder hidden(tokenizer), shown(tokenizer, true);
  EXPECT_EQ(hidden.push(256), "");
  EXPECT_EQ(shown.push(256), "<end>");
  EXPECT_EQ(shown.push('a'), "a");
}

TEST(StreamDecoder, ReferenceCasesAgreeWithDecodeTokenByToken) {
  int streams = 0, held_back = 0;
  for (const ReferenceVocabulary& v : reference_vocabularies())
    for (const auto& c : v.answers["cases"])
      for (const char* field : {"ids", "ids_full"})
        for (const bool special : {false, true}) {
          SCOPED_TRACE(v.name + ", case " + c["tag"].get<std::string>() + ", " + field);
          const std::vector<Token> ids = ids_of(c, field, "");
          const std::string whole = v.tokenizer->decode(ids, special);
          StreamDecoder stream(*v.tokenizer, special);
          std::string text;
          for (const Token id : ids) {
            const std::string piece = stream.push(id);
            EXPECT_TRUE(is_utf8(piece));
            text += piece;
            held_back += piece.empty();
          }
          text += stream.finish();
          EXPECT_TRUE(is_utf8(text));
          if (is_utf8(whole)) EXPECT_EQ(text, whole);
          else EXPECT_NE(text.find(kReplacement), std::string::npos);
          ++streams;
        }
  std::printf("%d streams; %d tokens gave no text at once\n", streams, held_back);
  EXPECT_GT(held_back, 0);
}

}  // namespace
}  // namespace gimbal::test
