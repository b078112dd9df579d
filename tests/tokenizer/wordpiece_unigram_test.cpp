// WordPiece, Unigram and RWKV on vocabularies small enough to be followed by hand, and what damaged files do
// to them. Real vocabularies are in tokenizer_test.
#include <gtest/gtest.h>

#include "grammar/grammar.h"
#include "support/gguf_writer.h"
#include "support/vocabularies.h"
#include "tokenizer/letter_map.h"
#include "tokenizer/prefix_tree.h"

namespace gimbal::test {
namespace {

constexpr TokenizeOptions kPlain{.add_bos = false, .parse_special = false};
constexpr TokenizeOptions kSpecial{.add_bos = false, .parse_special = true};
using Ids = std::vector<Token>;
using Strings = std::vector<std::string>;

GgufWriter file_of(const char* model, const Strings& tokens, const std::vector<int32_t>& types) {
  GgufWriter file;
  file.string("tokenizer.ggml.model", model)
      .strings("tokenizer.ggml.tokens", tokens)
      .array("tokenizer.ggml.token_type", kI32, types);
  return file;
}

std::unique_ptr<Tokenizer> made(const GgufWriter& file) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = tokenizer_of(file.build());
  if (tokenizer) return *std::move(tokenizer);
  ADD_FAILURE() << tokenizer.error().message;
  std::exit(1);
}

void expect_malformed(const GgufWriter& file, const std::string& key) {
  const Result<std::unique_ptr<Tokenizer>> tokenizer = tokenizer_of(file.build());
  ASSERT_FALSE(tokenizer) << "accepted; expected a complaint about " << key;
  EXPECT_EQ(tokenizer.error().code, Code::Malformed);
  EXPECT_NE(tokenizer.error().message.find(key), std::string::npos) << tokenizer.error().message;
}

// 0 [UNK], 1 [CLS], 2 [SEP], then whole words with a mark in front, and continuations of words without.
const Strings kWords = {"[UNK]", "[CLS]", "[SEP]", "▁a",  "▁ab", "b", "c",
                        "bc",    "▁,",    "▁世",   "▁界", "▁A",  "▁é"};
GgufWriter wordpiece_file() { return file_of("bert", kWords, {2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); }

TEST(WordPiece, TheLongestPieceIsTakenAtEveryPlace) {
  const auto t = made(wordpiece_file());
  EXPECT_EQ(t->encode("a ab abc abbc", kPlain), (Ids{3, 4, 4, 6, 4, 7}));
  EXPECT_EQ(t->encode("abx a", kPlain), (Ids{0, 3}));  // no pieces to its end: the whole word is unknown
  EXPECT_EQ(t->encode("a"), (Ids{1, 3, 2}));
  EXPECT_EQ(t->encode(""), (Ids{1, 2}));
  EXPECT_EQ(t->decode(Ids{3, 6, 4}), " ac ab");
}

TEST(WordPiece, TextIsCleaned) {
  const auto t = made(wordpiece_file());
  EXPECT_EQ(t->encode("A,\u00c1", kPlain), (Ids{3, 8, 3}));          // lower case, and no accents
  EXPECT_EQ(t->encode("a\u0301b", kPlain), (Ids{4}));                // also where they stand alone
  EXPECT_EQ(t->encode("a\u200bb\u3000a\xff", kPlain), (Ids{4, 3}));  // controls and broken bytes go away
  EXPECT_EQ(t->encode("世界a", kPlain), (Ids{9, 10, 3}));            // ideographs are words
  const auto cased = made(wordpiece_file().boolean("tokenizer.ggml.normalizer.lowercase", false));
  EXPECT_EQ(cased->encode("A \u00e9", kPlain), (Ids{11, 12}));
  const auto accents = made(wordpiece_file().boolean("tokenizer.ggml.normalizer.strip_accents", false));
  EXPECT_EQ(accents->encode("A \u00c9", kPlain), (Ids{3, 12}));
}

// The first and the last ideograph of each block of BERT's list are words of their own; their neighbours are
// not.
TEST(WordPiece, TheBlocksOfIdeographs) {
  const auto t = made(wordpiece_file().boolean("tokenizer.ggml.normalizer.strip_accents", false));
  for (const uint32_t c : {0x4e00, 0x9fff, 0x3400, 0x4dbf, 0x20000, 0x2a6df, 0x2a700, 0x2b73f, 0x2b740,
                           0x2b81f, 0x2b920, 0x2ceaf, 0xf900, 0xfaff, 0x2f800, 0x2fa1f}) {
    EXPECT_EQ(t->encode("a" + utf8_of(c) + "a", kPlain), (Ids{3, 0, 3})) << std::hex << c;
  }
  for (const uint32_t c :
       {0x33ff, 0x4dc0, 0xa000, 0xd7ff, 0xfb00, 0x1ffff, 0x2a6e0, 0x2ceb0, 0x2f7ff, 0x2fa20}) {
    EXPECT_EQ(t->encode("a" + utf8_of(c) + "a", kPlain), (Ids{0})) << std::hex << c;
  }
}

TEST(WordPiece, SpecialTextIsTextUnlessAsked) {
  const auto t = made(wordpiece_file());
  EXPECT_EQ(t->encode("a[SEP]a", kSpecial), (Ids{3, 2, 3}));
  EXPECT_EQ(t->encode("a[SEP]a", kPlain), (Ids{3, 0, 0, 0, 3}));
}

TEST(WordPiece, FilesWithoutItsSpecialTokensAreRefused) {
  expect_malformed(file_of("bert", {"[UNK]", "[CLS]", "a"}, {2, 3, 1}), "seperator_token_id");
  expect_malformed(file_of("bert", {"[CLS]", "[SEP]", "a"}, {3, 3, 1}), "unknown_token_id");
  expect_malformed(file_of("bert", {"[UNK]", "[SEP]", "a"}, {2, 3, 1}), "cls_token_id");
}

// 0 <unk>, 1 </s>, then letters and words with their scores.
GgufWriter unigram_file() {
  return file_of("t5", {"<unk>", "</s>", "▁", "a", "b", "ab", "▁a", "bc", "c", "XY"},
                 {2, 3, 1, 1, 1, 1, 1, 1, 1, 4})
      .array("tokenizer.ggml.scores", kF32, std::vector<float>{0, 0, -2, -3, -3, -4, -4, -2.5f, -3, -9});
}

TEST(Unigram, TheBestSumWins) {
  const auto t = made(unigram_file());
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{5}));       // -4 beats -6
  EXPECT_EQ(t->encode("abc", kPlain), (Ids{3, 7}));   // -5.5 beats -7
  EXPECT_EQ(t->encode("a", {}), (Ids{3, 1}));         // EOS, as files that do not say expect
  EXPECT_EQ(t->encode("xyza", kPlain), (Ids{0, 3}));  // unknown characters together are one token
  EXPECT_EQ(t->encode("a\xff", kPlain), (Ids{3, 0}));
  EXPECT_EQ(t->encode("XY", kPlain), (Ids{9}));  // user-defined: always taken
}

// A character that only begins a longer token is unknown where the longer token does not fit.
TEST(Unigram, ACharacterThatOnlyBeginsATokenCanBeUnknown) {
  const auto t = made(file_of("t5", {"<unk>", "</s>", "ab", "bcd"}, {2, 3, 1, 1})
                          .array("tokenizer.ggml.scores", kF32, std::vector<float>{0, 0, -1, -1}));
  EXPECT_EQ(t->encode("abcd", kPlain), (Ids{0, 3}));
  EXPECT_EQ(t->encode("ab", kPlain), (Ids{2}));
}

TEST(Unigram, Spaces) {
  EXPECT_EQ(made(unigram_file())->encode(" a  a ", kPlain), (Ids{6, 2, 6, 2}));
  auto adds = unigram_file();
  adds.boolean("tokenizer.ggml.add_space_prefix", true);
  EXPECT_EQ(made(adds)->encode("a  a", kPlain), (Ids{6, 2, 6}));
  EXPECT_EQ(made(adds)->decode(Ids{6, 6}), "a a");
  adds.boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  EXPECT_EQ(made(adds)->encode("  a  a  ", kPlain), (Ids{6, 6}));
}

// A map with one entry, A to b: the root's children begin at 0x80, so A is at 0x80 ^ 0x41, its value at the
// next.
std::vector<uint8_t> charsmap(uint32_t units, uint32_t value, const std::string& replacements) {
  std::vector<uint32_t> array(units);
  const auto set = [&](size_t i, uint32_t unit) {
    if (i < array.size()) array[i] = unit;
  };
  set(0, 0x80 << 10);
  set(0xc1, 1 << 10 | 1 << 8 | 'A');
  set(0xc0, value);
  std::vector<uint8_t> bytes;
  const auto put = [&](uint32_t word) {
    for (int i = 0; i < 4; ++i) bytes.push_back(uint8_t(word >> (8 * i)));
  };
  put(units * 4);
  for (uint32_t unit : array) put(unit);
  bytes.insert(bytes.end(), replacements.begin(), replacements.end());
  return bytes;
}

TEST(Unigram, CharactersAreMappedByTheFile) {
  const auto with = [](const std::vector<uint8_t>& map) {
    return unigram_file().array("tokenizer.ggml.precompiled_charsmap", kU8, map);
  };
  const std::string replacements("xx\0b\0", 5);
  EXPECT_EQ(made(with(charsmap(256, 3, replacements)))->encode("aA", kPlain), (Ids{5}));
  // Maps that lead outside of themselves change nothing.
  for (const uint32_t units : {1u, 0xc0u, 0xc1u})
    EXPECT_EQ(made(with(charsmap(units, 3, replacements)))->encode("aA", kPlain), (Ids{3, 0}));
  EXPECT_EQ(made(with(charsmap(256, 99, replacements)))->encode("aA", kPlain), (Ids{3, 0}));
  EXPECT_EQ(made(with(charsmap(256, 0, "not ended")))->encode("aA", kPlain), (Ids{3, 0}));
  EXPECT_TRUE(tokenizer_of(with({}).build()));
  for (const std::vector<uint8_t>& bad : {std::vector<uint8_t>{1, 0}, std::vector<uint8_t>{8, 0, 0, 0, 1, 2},
                                          std::vector<uint8_t>{3, 0, 0, 0, 1, 2, 3}})
    expect_malformed(with(bad), "precompiled_charsmap");
  expect_malformed(unigram_file().string("tokenizer.ggml.precompiled_charsmap", "no array"),
                   "precompiled_charsmap");
}

TEST(Unigram, FilesWithoutScoresOrAnUnknownTokenAreRefused) {
  expect_malformed(file_of("t5", {"<unk>", "a"}, {2, 1}), "tokenizer.ggml.scores");
  expect_malformed(
      file_of("t5", {"a", "b"}, {1, 1}).array("tokenizer.ggml.scores", kF32, std::vector<float>{0, 0}),
      "unknown_token_id");
}

TEST(Rwkv, TheLongestTokenAtEveryPlace) {
  const auto t =
      made(file_of("rwkv", {"<s>", "a", "ab", "\\n", "\\xe4\\xb8", "\\\\", "\\x"}, {3, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(t->encode("aba\n\xe4\xb8\\", {}), (Ids{2, 1, 3, 4, 5}));
  EXPECT_EQ(t->encode("b", {}), Ids{});
  EXPECT_EQ(t->decode(Ids{2, 3, 4}), "ab\n\xe4\xb8");
}

// Gemma 4's form of BPE: tokens are characters, spaces are marks, what has no token becomes bytes.
TEST(CharacterBpe, CharactersMergeAndTheRestBecomesBytes) {
  const auto t = made(file_of("gemma4", {"<bos>", "▁", "a", "b", "▁a", "\n", "\n\n", "<0xE2>", "<0x82>"},
                              {3, 1, 1, 1, 1, 1, 1, 6, 6})
                          .strings("tokenizer.ggml.merges", {"▁ a"})
                          .u32("tokenizer.ggml.bos_token_id", 0)
                          .boolean("tokenizer.ggml.add_bos_token", false));
  EXPECT_EQ(t->encode("b a\n\na", {}), (Ids{0, 3, 4, 6, 2}));  // BOS whatever the file says
  EXPECT_EQ(t->encode("a\u20ac", kPlain), (Ids{2, 7, 8}));     // 0xAC has no token
  EXPECT_EQ(t->decode(Ids{3, 4, 6}), "b a\n\n");
}

TEST(PrefixTree, EveryEntryThatATextBeginsWith) {
  const PrefixTree tree({{"ab", 1}, {"a", 2}, {"abcd", 3}, {"", 4}, {"b", 5}, {"ab", 6}});
  Ids found;
  tree.each("abcx", [&](size_t bytes, Token id) { found.insert(found.end(), {Token(bytes), id}); });
  EXPECT_EQ(found, (Ids{1, 2, 2, 1}));
  EXPECT_EQ(tree.longest("abcde").id, 3);
  EXPECT_EQ(tree.longest("x").id, -1);
  EXPECT_EQ(tree.longest("").bytes, 0u);
  EXPECT_EQ(PrefixTree({}).longest("a").id, -1);
}

TEST(LetterMap, KnownLetters) {
  const LetterMap lower = LetterMap::lower_case(), plain = LetterMap::without_accents();
  EXPECT_EQ(lower.apply("ÀÉßŽЖΩİꓘ\xff!"), "àéßžжωiꓘ\xff!");
  EXPECT_EQ(plain.apply("éÅǖ가각豈a"), "eAuᄀᄀ豈a");  // the last but one: U+F900 to U+8C48
  EXPECT_EQ(lower(0x10ffff), 0x10ffffu);
  EXPECT_EQ(plain(0), 0u);
}

}  // namespace
}  // namespace gimbal::test
