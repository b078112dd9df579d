// Metadata that is wrong: each fault is refused with an error that names the file and the key, or has a
// defined meaning; never a crash.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "support/gguf_writer.h"
#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int32_t>;

const Strings kTokens = {"<unk>", "<s>", "</s>", "a", "b", "ab"};

struct Keys {
  std::string model = "llama";
  std::function<void(GgufWriter&)> tokens = [](GgufWriter& f) {
    f.strings("tokenizer.ggml.tokens", kTokens);
  };
  std::function<void(GgufWriter&)> types = [](GgufWriter& f) {
    f.array("tokenizer.ggml.token_type", kI32, Ints{2, 3, 3, 1, 1, 1});
  };
  std::function<void(GgufWriter&)> scores = [](GgufWriter& f) {
    f.array("tokenizer.ggml.scores", kF32, std::vector<float>{0, 0, 0, -1, -2, -3});
  };
  std::function<void(GgufWriter&)> merges = [](GgufWriter& f) {
    f.strings("tokenizer.ggml.merges", {"a b"});
  };
  std::function<void(GgufWriter&)> more = [](GgufWriter&) {};

  Result<std::unique_ptr<Tokenizer>> load() const {
    GgufWriter file;
    if (!model.empty()) file.string("tokenizer.ggml.model", model);
    tokens(file);
    types(file);
    if (model == "llama") scores(file);
    if (model == "gpt2") merges(file);
    more(file);
    return tokenizer_of(file.build());
  }
};

void expect_refused(const Keys& keys, Code code, const std::string& key, const std::string& says) {
  const Result<std::unique_ptr<Tokenizer>> t = keys.load();
  ASSERT_FALSE(t) << "accepted; expected a complaint about " << key;
  EXPECT_EQ(t.error().code, code);
  for (const std::string& part : {std::string("test.gguf"), key, says})
    EXPECT_NE(t.error().message.find(part), std::string::npos)
        << "'" << part << "' is not in: " << t.error().message;
  EXPECT_FALSE(t.error().remedy.empty());
}

const std::function<void(GgufWriter&)> kNothing = [](GgufWriter&) {};

TEST(Hostile, TheGoodFileLoads) {
  EXPECT_TRUE(Keys{}.load());
  EXPECT_TRUE((Keys{.model = "gpt2"}).load());
}

TEST(Hostile, TheModel) {
  expect_refused({.model = ""}, Code::Malformed, "tokenizer.ggml.model", "missing");
  expect_refused({.model = "", .more = [](GgufWriter& f) { f.u32("tokenizer.ggml.model", 1); }},
                 Code::Malformed, "tokenizer.ggml.model", "expected a string");
  expect_refused({.model = "hybriddna"}, Code::Unsupported, "tokenizer.ggml.model", "BPE with DNA");
  expect_refused({.model = "no such"}, Code::Unsupported, "tokenizer.ggml.model", "'no such'");
}

TEST(Hostile, TheTokens) {
  const char* key = "tokenizer.ggml.tokens";
  expect_refused({.tokens = kNothing}, Code::Malformed, key, "missing");
  expect_refused({.tokens =
                      [&](GgufWriter& f) {
                        f.array(key, kI32, Ints{1, 2});
                      }},
                 Code::Malformed, key, "strings");
  expect_refused({.tokens = [&](GgufWriter& f) { f.string(key, "a"); }}, Code::Malformed, key, "strings");
  expect_refused({.tokens = [&](GgufWriter& f) { f.strings(key, {}); }}, Code::Malformed, key, "empty");
}

// Tokens that nearly match everywhere: their length times the text's is the work.
TEST(Hostile, LongTokens) {
  Strings tokens = kTokens;
  const auto with = [&](size_t bytes) {
    tokens[5] = std::string(bytes - 1, 'a') + "b";
    return Keys{.tokens = [&](GgufWriter& f) { f.strings("tokenizer.ggml.tokens", tokens); },
                .types =
                    [](GgufWriter& f) {
                      f.array("tokenizer.ggml.token_type", kI32, Ints{2, 3, 3, 1, 1, 4});
                    }};
  };
  expect_refused(with(4097), Code::Malformed, "tokenizer.ggml.tokens",
                 "token 5 has 4097 bytes, expected at most 4096");
  const auto t = with(4096).load();
  ASSERT_TRUE(t);
  EXPECT_EQ((*t)->encode(tokens[5], {.add_bos = false}).back(), 5);
  EXPECT_GT((*t)->encode(std::string(20'000, 'a'), {.add_bos = false}).size(), 19'000u);
}

TEST(Hostile, TheTypesAndScores) {
  const char* types = "tokenizer.ggml.token_type";
  expect_refused({.types =
                      [&](GgufWriter& f) {
                        f.array(types, kI32, Ints{1, 2});
                      }},
                 Code::Malformed, types, "expected 6 elements, one per token, found 2");
  expect_refused({.types = [&](GgufWriter& f) { f.strings(types, kTokens); }}, Code::Malformed, types,
                 "integers");
  expect_refused({.types = [&](GgufWriter& f) { f.u32(types, 1); }}, Code::Malformed, types, "array");
  const char* scores = "tokenizer.ggml.scores";
  expect_refused({.scores = kNothing}, Code::Malformed, scores, "missing");
  expect_refused({.scores = [&](GgufWriter& f) { f.array(scores, kF32, std::vector<float>(7)); }},
                 Code::Malformed, scores, "found 7");
  expect_refused({.scores = [&](GgufWriter& f) { f.strings(scores, kTokens); }}, Code::Malformed, scores,
                 "floats");
  expect_refused({.scores = [&](GgufWriter& f) { f.array(scores, kF32, std::vector<float>(6, NAN)); }},
                 Code::Malformed, scores, "token 0 is not a number");
  // Types that do not exist mean nothing; such tokens give no text.
  const auto odd = Keys{.types = [&](GgufWriter& f) {
                     f.array(types, kI32, Ints{2, 3, 3, 99, -1, 1});
                   }}.load();
  ASSERT_TRUE(odd);
  EXPECT_EQ((*odd)->piece(3), "");
  EXPECT_EQ((*odd)->piece(5), "ab");
  EXPECT_TRUE((Keys{.types = kNothing}).load());
}

TEST(Hostile, TheIds) {
  for (const char* name : {"bos", "eos", "unknown", "eot", "eom"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    expect_refused({.more = [&](GgufWriter& f) { f.u32(key, 6); }}, Code::Malformed, key,
                   "expected an id below 6, the size of the vocabulary, found 6");
    expect_refused({.more = [&](GgufWriter& f) { f.scalar<int32_t>(key, kI32, -7); }}, Code::Malformed, key,
                   "token id");
    expect_refused({.more = [&](GgufWriter& f) { f.string(key, "2"); }}, Code::Malformed, key, "token id");
    EXPECT_TRUE((Keys{.more = [&](GgufWriter& f) { f.u32(key, 0xffffffff); }}).load())
        << "none, as converters write it";
    EXPECT_TRUE((Keys{.more = [&](GgufWriter& f) { f.scalar<int32_t>(key, kI32, -1); }}).load());
  }
  const auto none =
      Keys{.more = [](GgufWriter& f) { f.u32("tokenizer.ggml.bos_token_id", 0xffffffff); }}.load();
  ASSERT_TRUE(none);
  EXPECT_EQ((*none)->bos(), -1);
  EXPECT_FALSE((*none)->adds_bos());
}

TEST(Hostile, TheMergesAndTheFamily) {
  const char* key = "tokenizer.ggml.merges";
  expect_refused({.model = "gpt2", .merges = kNothing}, Code::Malformed, key, "missing");
  expect_refused({.model = "gpt2", .merges = [&](GgufWriter& f) { f.array(key, kI32, Ints{1}); }},
                 Code::Malformed, key, "strings");
  EXPECT_TRUE((Keys{.model = "gpt2", .merges = [&](GgufWriter& f) { f.strings(key, {}); }}).load());
  const char* pre = "tokenizer.ggml.pre";
  expect_refused({.model = "gpt2", .more = [&](GgufWriter& f) { f.string(pre, "no such"); }},
                 Code::Unsupported, pre, "'no such' is not known; known are a.x-4.0, ");
  expect_refused({.model = "gpt2", .more = [&](GgufWriter& f) { f.string(pre, "llama-bpf"); }},
                 Code::Unsupported, pre, "'llama-bpf' is not known; the nearest known name is 'llama-bpe'");
  expect_refused({.model = "gpt2", .more = [&](GgufWriter& f) { f.string(pre, ""); }}, Code::Unsupported, pre,
                 "''");
  expect_refused({.model = "gpt2", .more = [&](GgufWriter& f) { f.u32(pre, 1); }}, Code::Malformed, pre,
                 "string");
}

TEST(Hostile, OfEqualTokensTheFirstIsUsed) {
  const auto t = Keys{.tokens =
                          [](GgufWriter& f) {
                            f.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "<s>", "a", "a", ""});
                          },
                      .more = [](GgufWriter& f) { f.boolean("tokenizer.ggml.add_space_prefix", false); }}
                     .load();
  ASSERT_TRUE(t);
  EXPECT_EQ((*t)->encode("a<s>", {.add_bos = false}), (std::vector<Token>{3, 1}));
  EXPECT_EQ((*t)->decode(std::vector<Token>{3, 4, 5}), "aa");
}

// Vocabularies and texts of random bytes, from few bytes so that everything overlaps.
TEST(Hostile, RandomVocabulariesDoNotCrash) {
  std::mt19937 random(7);
  const auto number = [&](uint32_t below) { return uint32_t(random()) % below; };
  const auto bytes = [&](uint32_t most) {
    static constexpr char kBytes[] = "ab <>\n\xc4\xa0\xe2\x96\x81\xff";
    std::string s;
    for (uint32_t n = number(most + 1); n > 0; --n)
      s += kBytes[number(sizeof kBytes)];  // sometimes a zero byte
    return s;
  };
  int loaded = 0;
  for (int round = 0; round < 400; ++round) {
    const uint32_t count = 1 + number(30);
    Strings tokens, merges;
    Ints types;
    std::vector<float> scores;
    for (uint32_t i = 0; i < count; ++i) {
      tokens.push_back(bytes(5));
      types.push_back(int32_t(number(8)));
      scores.push_back(number(4) ? -float(number(5)) : number(2) ? INFINITY : -INFINITY);
      merges.push_back(tokens[number(i + 1)] + " " + tokens[number(i + 1)]);
    }
    const auto t = Keys{.model = round % 2 ? "llama" : "gpt2",
                        .tokens = [&](GgufWriter& f) { f.strings("tokenizer.ggml.tokens", tokens); },
                        .types = [&](GgufWriter& f) { f.array("tokenizer.ggml.token_type", kI32, types); },
                        .scores = [&](GgufWriter& f) { f.array("tokenizer.ggml.scores", kF32, scores); },
                        .merges = [&](GgufWriter& f) { f.strings("tokenizer.ggml.merges", merges); },
                        .more = [&](GgufWriter& f) { f.u32("tokenizer.ggml.eos_token_id", number(count)); }}
                       .load();
    if (!t) continue;
    ++loaded;
    for (int text = 0; text < 10; ++text)
      for (const bool special : {false, true}) {
        const std::vector<Token> ids =
            (*t)->encode(bytes(40), {.add_bos = special, .parse_special = special});
        for (const Token id : ids) {
          EXPECT_GE(id, 0);
          EXPECT_LT(id, (*t)->size());
        }
        StreamDecoder stream(**t, special);
        for (const Token id : ids) stream.push(id);
        stream.finish();
        (*t)->decode(ids, special);
      }
  }
  EXPECT_GT(loaded, 300);
}

}  // namespace
}  // namespace gimbal::test
