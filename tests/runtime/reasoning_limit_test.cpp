// The limit of a model's reasoning: when its closing mark is put in, and that the rest is the model's own.
#include "runtime/reasoning_limit.h"

#include <gtest/gtest.h>

#include "support/vocabularies.h"

namespace gimbal::test {
namespace {

const Tokenizer& words() {
  constexpr const char* kVocabulary[] = {"tok512"};
  static const auto all = reference_vocabularies(kVocabulary);
  return *all.at(0).tokenizer;
}

std::vector<Token> tokens_of(const std::string& text) { return words().encode(text, {.add_bos = false}); }

// What stands in place of the model's text, which follows it.
std::string with_limit(const ReasoningLimit& limit, const std::string& text, size_t* forced = nullptr) {
  ReasoningLimiter limiter(limit, &words());
  std::string out;
  size_t put = 0;
  auto take = [&](Token t) { limiter.take(t), out += words().piece(t, true); };
  auto put_in = [&] {
    for (int i = 0; i < 100; i++) {
      const auto next = limiter.forced();
      if (!next) return;
      take(*next), put++;
    }
    ADD_FAILURE() << "it never ends";
  };
  put_in();
  for (Token t : tokens_of(text)) take(t), put_in();
  if (forced) *forced = put;
  return out;
}

constexpr ReasoningLimit limit_of(int tokens, bool inside) {
  return {tokens, inside, "<think>", "</think>", "</think>\n\n"};
}

TEST(ReasoningLimit, EndsLongReasoning) {
  const std::string thought = "one day there was a little girl who had a red ball";
  const std::string text = thought + "</think> and so on";
  const size_t n = tokens_of(text).size();
  for (size_t limit : {0u, 1u, 3u, 8u}) {
    size_t forced = 0;
    const std::string out = with_limit(limit_of(int(limit), true), text, &forced);
    const auto tokens = tokens_of(text);
    std::string want;
    for (size_t i = 0; i < limit; i++) want += words().piece(tokens[i], true);
    const auto finish = words().encode("</think>\n\n", {.add_bos = false, .parse_special = true});
    for (Token t : finish) want += words().piece(t, true);
    for (size_t i = limit; i < n; i++) want += words().piece(tokens[i], true);
    EXPECT_EQ(out, want) << limit;
    EXPECT_EQ(forced, finish.size());
  }
}

TEST(ReasoningLimit, LeavesOtherTextsAlone) {
  size_t forced = 1;
  const auto expect_alone = [&](const ReasoningLimit& limit, const std::string& text) {
    with_limit(limit, text, &forced);
    EXPECT_EQ(forced, 0u) << text;
  };
  const std::string text = "one day there was a little girl";
  expect_alone(limit_of(-1, true), text);                       // no limit
  expect_alone(limit_of(2, false), text);                       // no reasoning
  expect_alone(limit_of(2, false), text + "<think>" + text);    // not at the beginning
  expect_alone(limit_of(100, true), text + "</think>" + text);  // it ends by itself
  expect_alone(limit_of(100, false), "<think>" + text + "</think>");
  with_limit(limit_of(4, false), "\n <think>" + text, &forced);  // the model opened it
  EXPECT_GT(forced, 0u);
}

}  // namespace
}  // namespace gimbal::test
