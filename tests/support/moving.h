// A text whose session moves from model to model between tokens.
#pragma once
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "runtime/generate.h"
#include "support/placed.h"

namespace gimbal::test {

// Models of one file, on one device each or on several. The story moves along them and round again, with
// `stay` tokens at each; a story that stays at the first one has the same tokens.
inline void check_moves(const ModelSource& file, std::span<Model* const> way, int stay) {
  ASSERT_FALSE(way.empty());
  const auto tokenizer = *Tokenizer::create(file.metadata());
  const auto tell = [&](Session& s, std::span<const Token> prompt, int tokens) {
    GenerateSettings settings;
    settings.sampler.greedy = true, settings.ignore_stop_tokens = true, settings.max_tokens = tokens;
    auto g = generate(s, *tokenizer, prompt, settings, [](std::string_view, Token) { return true; });
    EXPECT_TRUE(g) << g.error().message;
    return g ? g->tokens : std::vector<Token>();
  };
  const auto prompt = tokenizer->encode("Once upon a time");
  const int all = stay * int(way.size() + 1);
  std::vector<Token> want;
  {
    const auto alone = *Session::create(*way[0]);
    want = tell(*alone, prompt, all);
  }
  ASSERT_EQ(want.size(), size_t(all));
  const auto s = *Session::create(*way[0]);
  std::vector<Token> got, next = prompt;
  for (size_t stop = 0; stop <= way.size(); stop++) {
    Model* to = way[stop % way.size()];
    if (to != &s->model()) {
      const auto moved = s->move_to(*to);
      ASSERT_TRUE(moved) << moved.error().message;
      EXPECT_EQ(&s->model(), to);
    }
    const auto more = tell(*s, next, stay);
    ASSERT_EQ(more.size(), size_t(stay));
    got.insert(got.end(), more.begin(), more.end());
    next = {got.back()};
  }
  EXPECT_EQ(got, want);
}

}  // namespace gimbal::test
