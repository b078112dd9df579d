// Rules that real vocabularies seldom show, on vocabularies small enough to be followed by hand.
#include <gtest/gtest.h>

#include "support/gguf_writer.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

constexpr TokenizeOptions kPlain{.add_bos = false, .parse_special = false};
constexpr TokenizeOptions kSpecial{.add_bos = false, .parse_special = true};
using Ids = std::vector<Token>;

enum Type : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Entry {
  std::string text;
  Type type = kNormal;
  float score = 0;
};

GgufWriter file_of(const std::string& model, const std::vector<Entry>& entries) {
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  std::vector<float> scores;
  for (const Entry& e : entries) {
    texts.push_back(e.text);
    types.push_back(e.type);
    scores.push_back(e.score);
  }
  GgufWriter file;
  file.string("tokenizer.ggml.model", model)
      .strings("tokenizer.ggml.tokens", texts)
      .array("tokenizer.ggml.token_type", kI32, types);
  if (model == "llama") file.array("tokenizer.ggml.scores", kF32, scores);
  return file;
}

std::unique_ptr<Tokenizer> made(const GgufWriter& file) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = tokenizer_of(file.build());
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    std::exit(1);
  }
  return *std::move(tokenizer);
}

// SentencePiece: 0 <unk>, 1 <s>, 2 </s>, then letters and what they merge to.
std::vector<Entry> spm_entries() {
  return {{"<unk>", kUnknown},
          {"<s>", kControl},
          {"</s>", kControl},
          {"a", kNormal, -9},
          {"b", kNormal, -9},
          {"ab", kNormal, -1},
          {"ba", kNormal, -1},
          {"aba", kNormal, -2},
          {"\xe2\x96\x81", kNormal, -9},
          {"\xe2\x96\x81"
           "a",
           kNormal, -5}};
}

TEST(Spm, TheBetterScoreMergesFirstAndTheLeftOneAmongEquals) {
  const auto t = made(file_of("llama", spm_entries()).boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{5}));
  EXPECT_EQ(t->encode("aba", kPlain),
            (Ids{7}));  // a b a: both merges score -1, the left one wins: ab a, then aba
  EXPECT_EQ(t->encode("bab", kPlain), (Ids{6, 4}));  // ba b
  EXPECT_EQ(t->encode(" a", kPlain), (Ids{9}));
  EXPECT_EQ(t->encode("", kPlain), Ids{});
}

TEST(Spm, ASpaceIsPutInFrontAndTakenAwayAgain) {
  const auto t = made(file_of("llama", spm_entries()));
  EXPECT_EQ(t->encode("a", kPlain), (Ids{9}));
  EXPECT_EQ(t->decode(Ids{9}), "a");
  EXPECT_EQ(t->decode(Ids{9, 9}), "a a");
  EXPECT_EQ(t->encode(" a", kPlain), (Ids{8, 9}));
  EXPECT_EQ(t->decode(Ids{8, 9}), " a");
  EXPECT_EQ(t->piece(9), " a");
  EXPECT_EQ(t->encode("<s>a", kSpecial), (Ids{1, 9}));  // also after a special token
}

TEST(Spm, WithoutByteTokensACharacterIsOneUnknownToken) {
  const auto t = made(file_of("llama", spm_entries()));
  EXPECT_EQ(t->encode("a\xe2\x82\xac"
                      "b",
                      kPlain),
            (Ids{9, 0, 4}));
  EXPECT_EQ(t->encode("a\xff", kPlain), (Ids{9, 0}));
  EXPECT_EQ(t->piece(0), "");
  EXPECT_EQ(t->piece(0, true), "<unk>");
}

TEST(Spm, ACharacterWithOneByteTokenMissingIsOneUnknownToken) {
  std::vector<Entry> entries = spm_entries();
  entries.insert(entries.end(), {{"<0xE2>", kByte}, {"<0x82>", kByte}});
  const auto t = made(file_of("llama", entries));
  EXPECT_EQ(t->encode("a\xe2\x82\xac"
                      "b",
                      kPlain),
            (Ids{9, 0, 4}));
}

TEST(Spm, PlainTextNeverBecomesAMarkerByMerging) {
  std::vector<Entry> entries = spm_entries();
  entries.insert(entries.end(),
                 {{"<", kNormal, -9}, {"s", kNormal, -9}, {">", kNormal, -9}, {"<s", kNormal, -1}});
  const auto t = made(file_of("llama", entries).boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(t->encode("<s>", kPlain), (Ids{13, 12}));
  EXPECT_EQ(t->encode("<s>", kSpecial), (Ids{1}));
}

TEST(Spm, OldFilesWithoutIdsUseTheUsualNames) {
  const auto t = made(file_of("llama", spm_entries()));
  EXPECT_EQ(t->bos(), 1);
  EXPECT_EQ(t->eos(), 2);
  EXPECT_TRUE(t->adds_bos());
  EXPECT_TRUE(t->is_stop(2));
  EXPECT_EQ(t->encode("a"), (Ids{1, 9}));
  const auto with_eos = made(file_of("llama", spm_entries()).boolean("tokenizer.ggml.add_eos_token", true));
  EXPECT_EQ(with_eos->encode("a"), (Ids{1, 9, 2}));
}

// Byte-level BPE: 0..2 letters, 3.. merges, then special tokens.
GgufWriter bpe_file(std::vector<Entry> more = {}, std::vector<std::string> more_merges = {},
                    const char* pre = "gpt-2") {
  std::vector<Entry> entries = {{"a"}, {"b"}, {"c"}, {"ab"}, {"bc"}, {"abc"}, {"\xc4\xa0"}};
  entries.insert(entries.end(), more.begin(), more.end());
  std::vector<std::string> merges = {"b c", "a b", "ab c"};
  merges.insert(merges.end(), more_merges.begin(), more_merges.end());
  GgufWriter file = file_of("gpt2", entries);
  if (pre) file.string("tokenizer.ggml.pre", pre);
  return file.strings("tokenizer.ggml.merges", merges);
}

TEST(Bpe, TheFirstRuleMergesFirst) {
  const auto t = made(bpe_file());
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{0, 4}));  // "b c" outranks "a b"; there is no rule "a bc"
  EXPECT_EQ(t->encode("ab c", kPlain), (Ids{3, 6, 2}));
  EXPECT_EQ(t->decode(Ids{3, 6, 2}), "ab c");
}

TEST(Bpe, WholeWordsAreTakenOnlyWhereTheFamilyDoesSo) {
  const auto t = made(bpe_file({}, {}, "llama-bpe"));
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{5}));
}

TEST(Bpe, RulesThatCannotApplyAreIgnored) {
  const auto t = made(bpe_file({}, {"x y", "a", "", " ", "a ", "c a", "b c", "a  b"}));
  EXPECT_EQ(t->encode("abcca", kPlain), (Ids{0, 4, 2, 0}));
  EXPECT_NE(t->describe().find("3 merges"), std::string::npos) << t->describe();
}

TEST(Bpe, AMissingFamilyNameIsSaid) {
  const auto t = made(bpe_file({}, {}, nullptr));
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{0, 4}));
  EXPECT_NE(t->describe().find("no pre-tokenizer named in the file, default assumed"), std::string::npos);
}

TEST(Bpe, BytesWithoutATokenAreDropped) {
  EXPECT_EQ(made(bpe_file())->encode("axb", kPlain), (Ids{0, 1}));  // and nothing merges over the gap
  const auto t = made(bpe_file({{"<unk>", kUnknown}}).u32("tokenizer.ggml.unknown_token_id", 7));
  EXPECT_EQ(t->encode("x\xff\u20ac", kPlain), Ids{});
}

TEST(Specials, LongerOnesWinAndThenTheLeftOne) {
  const auto t =
      made(bpe_file({{"<a>", kControl}, {"<a><a>", kControl}, {"><", kControl}, {"a><a", kControl}}));
  EXPECT_EQ(t->encode("<a>", kSpecial), (Ids{7}));
  EXPECT_EQ(t->encode("<a><a>", kSpecial), (Ids{8}));
  EXPECT_EQ(t->encode("<a><a><a>", kSpecial), (Ids{8, 7}));
  // "a><a" (4 bytes) outranks both "><", which it overlaps, and "<a>".
  EXPECT_EQ(t->encode("ca><ac", kSpecial), (Ids{2, 10, 2}));
  EXPECT_EQ(t->encode("c><a>b", kSpecial), (Ids{2, 7, 1}));  // "<a>" outranks "><"; the ">" has no token
}

TEST(Specials, UserDefinedTokensAreAlwaysFoundControlTokensOnlyWhenAsked) {
  const auto t = made(bpe_file({{"[c]", kControl}, {"[u]", kUserDefined}}));
  EXPECT_EQ(t->encode("a[u]b", kPlain), (Ids{0, 8, 1}));
  EXPECT_EQ(t->encode("a[c]b", kSpecial), (Ids{0, 7, 1}));
  EXPECT_EQ(t->encode("a[c]b", kPlain), (Ids{0, 2, 1}));  // the brackets have no tokens in this vocabulary
  EXPECT_EQ(t->decode(Ids{7, 8}), "[u]");
  EXPECT_EQ(t->decode(Ids{7, 8}, true), "[c][u]");
}

TEST(Specials, PhiMarkersSwallowWhitespace) {
  const std::vector<Entry> more = {{"<|x|>", kControl}, {"<s>", kControl}};
  const auto phi = made(bpe_file(more).string("general.name", "Phi-3 tiny"));
  EXPECT_EQ(phi->encode("<|x|> \n\t a", kSpecial), (Ids{7, 0}));
  EXPECT_EQ(phi->encode("<|x|> \n<|x|> ", kSpecial), (Ids{7, 7}));
  EXPECT_EQ(phi->encode("<s> a", kSpecial), (Ids{8, 6, 0}));
  const auto other = made(bpe_file(more).string("general.name", "other"));
  EXPECT_EQ(other->encode("<|x|> a", kSpecial), (Ids{7, 6, 0}));
}

TEST(Specials, StopsComeFromIdsAndNames) {
  const auto t =
      made(bpe_file({{"<|im_end|>"}, {"<|end|>", kControl}, {"<|return|>", kControl}, {"<|call|>", kControl}})
               .u32("tokenizer.ggml.eos_token_id", 2)
               .u32("tokenizer.ggml.eot_token_id", 1));
  EXPECT_EQ(t->eos(), 2);
  for (const Token id : {1, 2, 7, 9, 10}) EXPECT_TRUE(t->is_stop(id)) << id;
  for (const Token id : {-1, 0, 3, 8, 11})
    EXPECT_FALSE(t->is_stop(id)) << id;  // <|end|> ends only a message here
  EXPECT_TRUE(t->is_control(7));
  EXPECT_FALSE(t->is_control(0));
}

TEST(Ids, OutsideOfTheVocabularyGivesNothing) {
  const auto t = made(bpe_file());
  for (const Token id : {-1, -2147483647, 7, 2147483647}) {
    EXPECT_EQ(t->piece(id, true), "");
    EXPECT_FALSE(t->is_stop(id));
    EXPECT_FALSE(t->is_control(id));
  }
  EXPECT_EQ(t->decode(Ids{-5, 0, 99999}), "a");
}

}  // namespace
}  // namespace gimbal::test
