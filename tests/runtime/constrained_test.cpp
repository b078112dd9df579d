// A constraint composes with everything that chooses tokens: what is generated matches the grammar, greedily,
// with every way of sampling and with drafts, which change nothing; and it ends where the grammar does.
#include "runtime/generate.h"
#include "runtime/model_drafter.h"
#include "runtime/scripted_drafter.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/grammars.h"

namespace gimbal::test {
namespace {

constexpr const char* kGrammar = R"(root ::= "{" item ("," item){2,4} "}"
item ::= "\"" [a-z]{1,12} "\": " ([0-9]{1,3} | "\"" [^"\\\x00-\x1f]{0,20} "\"" | "[" item "]"))";

class Constrained : public testing::Test {
 protected:
  void SetUp() override {
    EngineOptions o;
    o.run.context = 300, o.run.batch = 48, o.run.drafts = 7;
    auto e = open_engine(golden_dir() + "/stories/stories260K-q8_0.gguf", o);
    ASSERT_TRUE(e) << e.error().message;
    engine_ = std::make_unique<Engine>(*std::move(e));
    tokenizer_ = *Tokenizer::create(engine_->file->metadata());
    session_ = *Session::create(*engine_->model);
    tree_ = TokenTree::create(*tokenizer_, engine_->model->config().vocabulary);
  }
  std::optional<Constraint> constraint(const char* gbnf) {
    auto c = Constraint::create(Matcher::parsed(gbnf), tree_);
    EXPECT_TRUE(c) << c.error().message;
    return c ? std::optional(*std::move(c)) : std::nullopt;
  }
  struct Told {
    std::string text;
    std::vector<Token> tokens;
    Finish finish;
    uint64_t accepted;
    bool operator==(const Told& o) const {
      return text == o.text && tokens == o.tokens && finish == o.finish;
    }
  };
  Told tell(GenerateSettings s, Constraint* c, Drafting* d) {
    session_->rewind(0);
    if (c) c->rewind(0);
    s.constraint = c, s.drafting = d;
    Told told;
    auto g = generate(*session_, *tokenizer_, tokenizer_->encode("Once upon a time"), s,
                      [&](std::string_view text, Token) {
                        told.text += text;
                        return true;
                      });
    EXPECT_TRUE(g) << g.error().message;
    if (!g) return told;
    told.tokens = g->tokens, told.finish = g->finish, told.accepted = g->drafts.accepted;
    return told;
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<const TokenTree> tree_;
};

std::vector<SamplerSettings> ways() {
  SamplerSettings greedy, usual, hot, penalties, biased;
  greedy.greedy = true;
  usual.seed = 11;
  hot.seed = 12, hot.temperature = 3, hot.top_k = 0, hot.top_p = 1, hot.min_p = 0;
  penalties.seed = 13, penalties.repeat_penalty = 1.3f, penalties.frequency_penalty = 0.2f;
  biased.seed = 14, biased.typical_p = 0.8f, biased.logit_bias = {{300, 1.5f}, {7, -2.f}};
  return {greedy, usual, hot, penalties, biased};
}

TEST_F(Constrained, WhatIsGeneratedMatchesAndDraftsChangeNothing) {
  Matcher matcher(kGrammar);
  auto c = constraint(kGrammar);
  ASSERT_TRUE(c);
  uint64_t accepted = 0;
  for (const SamplerSettings& way : ways())
    for (uint64_t seed = 0; seed < 6; seed++) {
      GenerateSettings s;
      s.sampler = way, s.sampler.seed += seed;
      const Told want = tell(s, &*c, nullptr);
      if (want.finish == Finish::StopToken) EXPECT_TRUE(matcher.matches(want.text)) << want.text;
      else EXPECT_EQ(int(matcher.fit(want.text)), int(Fit::Beginning)) << want.text;
      EXPECT_EQ(c->position(), want.tokens.size()) << "the text and no more";
      std::vector<int32_t> script = tokenizer_->encode("Once upon a time");
      script.insert(script.end(), want.tokens.begin(), want.tokens.end());
      script.push_back(tokenizer_->eos());
      for (double right : {1.0, 0.6, 0.0}) {
        Drafting d(std::make_unique<ScriptedDrafter>(script, right, 512, unsigned(seed)),
                   Drafting::Length::Most);
        const Told got = tell(s, &*c, &d);
        EXPECT_TRUE(got == want) << got.text << "\n" << want.text;
        EXPECT_EQ(c->position(), want.tokens.size());
        accepted += got.accepted;
      }
      Drafting ngram(std::make_unique<NgramDrafter>(), Drafting::Length::Most);
      EXPECT_TRUE(tell(s, &*c, &ngram) == want);
    }
  EXPECT_GT(accepted, 200u);
}

TEST_F(Constrained, ChangesNothingWhereAllIsAllowed) {
  auto c = constraint("root ::= .*");
  ASSERT_TRUE(c);
  GenerateSettings s;
  s.max_tokens = 60;
  for (const SamplerSettings& way : ways()) {
    s.sampler = way;
    s.sampler.temperature = std::min(way.temperature, 0.7f), s.sampler.top_k = 20;
    const Told free = tell(s, nullptr, nullptr);
    if (free.text.find("\xef\xbf\xbd") != std::string::npos) continue;  // half characters are no text
    EXPECT_TRUE(tell(s, &*c, nullptr) == free) << free.text;
  }
}

TEST_F(Constrained, EndsWhereTheGrammarEnds) {
  auto c = constraint(R"(root ::= "yes" " yes"{0,3})");
  ASSERT_TRUE(c);
  GenerateSettings s;
  s.sampler.greedy = true;
  EXPECT_EQ(tell(s, &*c, nullptr).finish, Finish::StopToken);
  s.ignore_stop_tokens = true;
  const Told all = tell(s, &*c, nullptr);
  EXPECT_EQ(all.finish, Finish::StopToken);
  EXPECT_EQ(all.text, "yes yes yes yes") << "as long as the grammar continues";
  s.max_tokens = 1;
  EXPECT_EQ(tell(s, &*c, nullptr).finish, Finish::Length);
  s.max_tokens = -1, s.stops = {"s y"};
  EXPECT_EQ(tell(s, &*c, nullptr).finish, Finish::StopString);
}

// An answer that may be completed ends within its tokens and its context; the model's own choice would not.
TEST_F(Constrained, ACompletedAnswerEndsWithinItsTokens) {
  Matcher matcher(kGrammar);
  auto c = constraint(kGrammar);
  ASSERT_TRUE(c);
  GenerateSettings s;
  s.sampler.greedy = true, s.max_tokens = 24;
  EXPECT_EQ(tell(s, &*c, nullptr).finish, Finish::Length) << "too easy";
  s.completes = true;
  for (const SamplerSettings& way : ways()) {
    s.sampler = way;
    const Told told = tell(s, &*c, nullptr);
    EXPECT_EQ(told.finish, Finish::StopToken);
    EXPECT_LE(told.tokens.size(), 24u);
    EXPECT_TRUE(matcher.matches(told.text)) << told.text;
    Drafting ngram(std::make_unique<NgramDrafter>(), Drafting::Length::Most);
    EXPECT_TRUE(tell(s, &*c, &ngram) == told);
  }
}

// What the bias forbids besides the grammar is an error, and no token outside of the grammar.
TEST_F(Constrained, ForbidsTogetherWithTheBias) {
  auto c = constraint(R"(root ::= "a")");
  ASSERT_TRUE(c);
  SamplerSettings s;
  s.greedy = true;
  Sampler plain(s);
  const auto mask = c->allowed();
  ASSERT_TRUE(mask);
  std::vector<float> logits(512, 1.f);
  const auto picked = plain.pick(logits, {}, *mask);
  ASSERT_TRUE(picked);
  EXPECT_TRUE(Constraint::allows(*mask, size_t(*picked)));
  for (Token t = 0; t < 512; t++)
    if (Constraint::allows(*mask, size_t(t)))
      s.logit_bias.emplace_back(t, -std::numeric_limits<float>::infinity());
  const auto none = Sampler(s).pick(logits, {}, *mask);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("together with the grammar"), std::string::npos)
      << none.error().message;
  s.logit_bias.clear();
  std::vector<float> impossible(512, -std::numeric_limits<float>::infinity());
  impossible[300] = 1;
  ASSERT_FALSE(Constraint::allows(*mask, 300));
  const auto forbidden = Sampler(s).pick(impossible, {}, *mask);
  ASSERT_FALSE(forbidden);
  EXPECT_NE(forbidden.error().message.find("the grammar forbids"), std::string::npos);
}

}  // namespace
}  // namespace gimbal::test
