// The loop from prompt to text: every way to finish, and the text that the reference data promises.
#include "runtime/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/likelihood.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

struct Story {
  Engine engine;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Session> session;

  explicit Story(const std::string& model = "stories260K-f32.gguf", int context = 128) {
    EngineOptions o;
    o.run.context = context;
    auto e = open_engine(golden_dir() + "/stories/" + model, o);
    EXPECT_TRUE(e) << e.error().message;
    engine = std::move(*e);
    tokenizer = *Tokenizer::create(engine.file->metadata());
    session = *Session::create(*engine.model);
  }

  struct Told {
    Generated result;
    std::string text;
    std::vector<std::string> pieces;
    std::string error;
  };
  Told tell(const GenerateSettings& settings, const std::string& prompt = "Once upon a time",
            int cancel_after = -1) {
    return tell(settings, tokenizer->encode(prompt), cancel_after);
  }
  Told tell(const GenerateSettings& settings, const std::vector<Token>& prompt, int cancel_after = -1) {
    session->rewind(0);
    Told told;
    auto r = generate(*session, *tokenizer, prompt, settings, [&](std::string_view piece, Token) {
      told.text += piece;
      told.pieces.emplace_back(piece);
      return int(told.pieces.size()) != cancel_after;
    });
    if (r) told.result = *r;
    else told.error = r.error().message;
    return told;
  }
};

GenerateSettings greedy(int most) {
  GenerateSettings s;
  s.sampler.greedy = true;
  s.max_tokens = most;
  return s;
}

// As of a prompt file, and of a conversation's earlier messages.
TEST(Generate, PenaltiesCountTheWholeTextWhateverTheSessionHolds) {
  Story story;
  GenerateSettings s = greedy(24);
  s.sampler.repeat_penalty = 1.6f;
  const auto text =
      story.tokenizer->encode("Once upon a time there was a girl named Lily. Lily had a dog. Lily");
  const auto whole = story.tell(s, text);
  ASSERT_EQ(whole.result.tokens.size(), 24u);
  for (size_t held : {size_t(0), size_t(3), text.size() - 1, text.size()}) {
    story.session->rewind(0);
    ASSERT_TRUE(story.session->advance(std::span(text).first(held), Session::Wanted::None, {}));
    auto g = generate_from_text(*story.session, *story.tokenizer, text, s,
                                [](std::string_view, Token) { return true; });
    ASSERT_TRUE(g) << g.error().message;
    EXPECT_EQ(g->tokens, whole.result.tokens) << held << " tokens held";
    EXPECT_EQ(size_t(g->prompt_tokens), text.size() - std::min(held, text.size() - 1));
  }
}

TEST(Generate, APromptCanBeCancelledBetweenItsBatches) {
  Story story("stories260K-f32.gguf", 512);
  std::vector<Token> prompt{1};
  for (int i = 0; i < 99; i++) prompt.push_back(400 + i % 50);
  story.session->limit_batch(32);
  GenerateSettings s = greedy(5);
  const auto plain = story.tell(s, prompt);
  std::vector<std::pair<size_t, size_t>> seen;
  s.on_prompt = [&](size_t done, size_t total) { return seen.emplace_back(done, total), true; };
  EXPECT_EQ(story.tell(s, prompt).result.tokens, plain.result.tokens);
  EXPECT_EQ(seen, (std::vector<std::pair<size_t, size_t>>{{32, 100}, {64, 100}, {96, 100}, {100, 100}}));
  s.on_prompt = [&](size_t done, size_t) { return done < 64; };
  const auto cancelled = story.tell(s, prompt);
  EXPECT_EQ(cancelled.error, "");
  EXPECT_EQ(cancelled.result.finish, Finish::Cancelled);
  EXPECT_TRUE(cancelled.result.tokens.empty());
  EXPECT_EQ(story.session->position(), 64);
}

TEST(Generate, GreedyTextIsThatOfTheReferenceData) {
  int compared = 0, cases = 0;
  for (const std::string& path : golden_files("stories", ".json")) {
    const auto golden = read_json(path);
    Story story(golden["model"], 512);
    for (const auto& c : golden["cases"]) {
      if (!c.contains("greedy_text")) continue;  // logits only
      const std::vector<Token> prompt = c["tokens"], want = c["greedy"];
      if (c["greedy_agree_steps"].get<size_t>() != want.size()) continue;  // the references part: a near tie
      const auto told = story.tell(greedy(int(want.size())), prompt);
      cases++;
      EXPECT_EQ(told.error, "");
      EXPECT_EQ(told.result.finish, Finish::Length);
      // int8 activations may turn a near tie: up to the first one the tokens must agree.
      size_t sure = want.size();
      const std::vector<double> margins = c["greedy_margins"];
      const bool exact = golden["model"].get<std::string>().find("-q") == std::string::npos;
      for (size_t i = margins.size(); i-- > 0;)
        if (margins[i] < (exact ? 0.01 : 0.7)) sure = i;
      ASSERT_GE(told.result.tokens.size(), sure);
      EXPECT_TRUE(std::equal(want.begin(), want.begin() + long(sure), told.result.tokens.begin())) << path;
      if (told.result.tokens != want) continue;
      std::string before;
      for (Token t : prompt) before += story.tokenizer->piece(t);
      EXPECT_EQ(before + told.text, c["greedy_text"].get<std::string>()) << path;
      compared++;
    }
  }
  std::printf("%d of %d texts compared to the end\n", compared, cases);
  EXPECT_GE(compared, 4) << "texts that were compared to the end";
}

TEST(Generate, Length) {
  Story story;
  for (int n : {0, 1, 7}) {
    const auto told = story.tell(greedy(n));
    EXPECT_EQ(told.error, "");
    EXPECT_EQ(told.result.finish, Finish::Length);
    EXPECT_EQ(int(told.result.tokens.size()), n);
    EXPECT_EQ(told.result.prompt_tokens, 5);
    EXPECT_EQ(story.session->position(), 5 + std::max(0, n - 1)) << "the last token is not computed";
  }
}

TEST(Generate, AStopStringThatArrivesInPieces) {
  Story story;
  const auto whole = story.tell(greedy(40));
  ASSERT_GT(whole.pieces.size(), 20u);
  // From inside one token's text to inside the next but one's.
  size_t at = 0, tried = 0;
  for (size_t i = 0; i + 2 < whole.pieces.size(); at += whole.pieces[i++].size()) {
    if (i < 10 || whole.pieces[i].size() < 2 || whole.pieces[i + 2].empty()) continue;
    const size_t from = at + 1, n = whole.pieces[i].size() + whole.pieces[i + 1].size();
    const std::string stop = whole.text.substr(from, n);
    if (whole.text.find(stop) != from) continue;
    tried++;
    GenerateSettings s = greedy(40);
    s.stops = {"never in a story", stop};
    const auto told = story.tell(s);
    EXPECT_EQ(told.result.finish, Finish::StopString);
    EXPECT_EQ(told.text, whole.text.substr(0, from)) << "stop '" << stop << "'";
    EXPECT_EQ(told.result.tokens.size(), i + 3);
  }
  EXPECT_GE(tried, 3u);
  GenerateSettings held = greedy(3);  // the end comes while a stop may still be beginning
  held.stops = {story.tell(greedy(3)).text + "!"};
  EXPECT_EQ(story.tell(held).text, story.tell(greedy(3)).text);
}

TEST(Generate, StopTokens) {
  Story story;
  const Token eos = story.tokenizer->eos();
  GenerateSettings s = greedy(6);
  s.sampler.logit_bias = {{eos, 1000.f}};
  auto told = story.tell(s);
  EXPECT_EQ(told.result.finish, Finish::StopToken);
  EXPECT_TRUE(told.result.tokens.empty());
  EXPECT_EQ(told.text, "");
  s.ignore_stop_tokens = true;
  told = story.tell(s);
  EXPECT_EQ(told.result.finish, Finish::Length);
  EXPECT_EQ(told.result.tokens, std::vector<Token>(6, eos));
}

// stories260K was trained on texts in a row: it ends one by the token that begins the next.
TEST(Generate, ATokenThatBeginsATextEndsThisOne) {
  Story story;
  const Token bos = story.tokenizer->bos();
  ASSERT_FALSE(story.tokenizer->is_stop(bos)) << "another rule would end the text";
  GenerateSettings s = greedy(6);
  s.sampler.logit_bias = {{bos, 1000.f}};
  auto told = story.tell(s);
  EXPECT_EQ(told.error, "");
  EXPECT_EQ(told.result.finish, Finish::StopToken);
  EXPECT_TRUE(told.result.tokens.empty());
  EXPECT_EQ(told.text, "");
  s.ignore_stop_tokens = true;
  EXPECT_EQ(story.tell(s).result.tokens, std::vector<Token>(6, bos));
}

// A device finds up to 64 of the largest logits itself; a larger top-k looks at all of them. Both ways give
// the same text where both can.
TEST(Generate, ATopKBeyondWhatTheDeviceFindsLooksAtAllLogits) {
  Story story;
  const int most = story.session->max_top();
  ASSERT_EQ(most, 64);
  GenerateSettings s;
  s.max_tokens = 20, s.ignore_stop_tokens = true, s.sampler.seed = 3, s.sampler.temperature = 1;
  s.sampler.top_p = 1, s.sampler.min_p = 0;
  for (int k : {most + 1, 100, 511, 512, 100000}) {
    s.sampler.top_k = k;
    const auto told = story.tell(s);
    EXPECT_EQ(told.error, "") << k;
    EXPECT_EQ(told.result.tokens.size(), 20u) << k;
  }
  s.sampler.top_k = most;
  const auto found_there = story.tell(s);
  EXPECT_EQ(found_there.error, "");
  s.sampler.logit_bias = {{5, 0.f}};  // changes nothing, but all logits must be looked at
  EXPECT_EQ(story.tell(s).result.tokens, found_there.result.tokens);
}

TEST(Generate, AFullContextEndsTheText) {
  Story story("stories260K-f32.gguf", 20);
  auto told = story.tell(greedy(-1));
  EXPECT_EQ(told.error, "");
  EXPECT_EQ(told.result.finish, Finish::ContextFull);
  EXPECT_EQ(told.result.tokens.size(), 16u) << "20 - 5 are computed, and one more is read off the last";
  EXPECT_EQ(story.session->position(), 20);
}

TEST(Generate, AFullContextOfWholePagesEndsTheText) {
  Story story("stories260K-f32.gguf", 64), longer("stories260K-f32.gguf", 65);
  GenerateSettings s = greedy(-1);
  s.ignore_stop_tokens = true;
  const auto told = story.tell(s);
  EXPECT_EQ(told.error, "");
  EXPECT_EQ(told.result.finish, Finish::ContextFull);
  EXPECT_EQ(told.result.tokens.size(), 60u) << "64 - 5 are computed, and one more is read off the last";
  s.max_tokens = 60;
  EXPECT_EQ(told.result.tokens, longer.tell(s).result.tokens);
}

TEST(Generate, TheSinkCancels) {
  Story story;
  auto told = story.tell(greedy(50), "Once upon a time", 3);
  EXPECT_EQ(told.result.finish, Finish::Cancelled);
  EXPECT_EQ(told.result.tokens.size(), 3u);
  EXPECT_EQ(told.pieces.size(), 3u) << "not called again after it said no";
}

TEST(Generate, PromptsThatCannotBe) {
  Story story("stories260K-f32.gguf", 20);
  EXPECT_NE(story.tell(greedy(5), std::vector<Token>{}).error.find("empty"), std::string::npos);
  const auto told = story.tell(greedy(5), std::vector<Token>(21, 5));
  EXPECT_NE(told.error.find("21"), std::string::npos) << told.error;
  EXPECT_NE(told.error.find("20"), std::string::npos) << told.error;
  EXPECT_EQ(story.session->position(), 0);
  EXPECT_EQ(story.tell(greedy(0), std::vector<Token>(20, 5)).error, "") << "one that just fits";
  EXPECT_NE(story.tell(greedy(5), std::vector<Token>{1, 512}).error.find("512"), std::string::npos);
  GenerateSettings bad = greedy(5);
  bad.stops = {""};
  EXPECT_NE(story.tell(bad).error.find("'stops'"), std::string::npos);
  bad = greedy(5), bad.sampler.top_p = 2;
  EXPECT_NE(story.tell(bad).error.find("top_p"), std::string::npos) << story.tell(bad).error;
}

// Of all logits, whatever the sampler looks at; also behind drafts that are right.
TEST(Generate, ProbabilitiesAreThoseOfTheLogits) {
  Story story;
  GenerateSettings s = greedy(12);
  EXPECT_TRUE(story.tell(s).result.logprobs.empty());
  s.logprobs = 3;
  const auto told = story.tell(s);
  const std::vector<Token>& tokens = told.result.tokens;
  ASSERT_EQ(told.result.logprobs.size(), tokens.size());
  ASSERT_EQ(told.result.top.size(), tokens.size());
  std::vector<Token> all = story.tokenizer->encode("Once upon a time");
  const size_t prompt = all.size();
  all.insert(all.end(), tokens.begin(), tokens.end());
  story.session->rewind(0);
  auto ok = story.session->advance(all, Session::Wanted::All, [&](size_t i, std::span<const float> logits) {
    if (i + 1 < prompt || i + 1 == all.size()) return;
    const size_t k = i + 1 - prompt;
    const double sum = log_sum_exp(logits);
    EXPECT_EQ(told.result.logprobs[k], float(logits[size_t(tokens[k])] - sum));
    std::vector<Token> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Token x, Token y) { return logits[size_t(x)] > logits[size_t(y)]; });
    ASSERT_EQ(told.result.top[k].size(), 3u);
    for (size_t n = 0; n < 3; n++) {
      EXPECT_EQ(told.result.top[k][n].token, order[n]);
      EXPECT_EQ(told.result.top[k][n].logprob, float(logits[size_t(order[n])] - sum));
    }
  });
  EXPECT_TRUE(ok) << ok.error().message;
  s.logprobs = 513;
  EXPECT_NE(story.tell(s).error.find("'logprobs'"), std::string::npos);
}

TEST(Generate, WithoutATokenizerThereAreTokensAndNoText) {
  Story story;
  const std::vector<Token> prompt = story.tokenizer->encode("Once upon a time");
  const auto want = story.tell(greedy(8), prompt);
  story.session->rewind(0);
  GenerateSettings s = greedy(8);
  std::string text;
  auto g = generate(*story.session, nullptr, prompt, s, [&](std::string_view piece, Token) {
    text += piece;
    return true;
  });
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->tokens, want.result.tokens);
  EXPECT_EQ(text, "");
}

TEST(Generate, TheSeedDecides) {
  Story story;
  GenerateSettings s;
  s.sampler.temperature = 1.5f, s.max_tokens = 30, s.ignore_stop_tokens = true;
  s.sampler.seed = 7;
  const auto a = story.tell(s), again = story.tell(s);
  EXPECT_EQ(a.result.tokens, again.result.tokens);
  EXPECT_EQ(a.text, again.text);
  s.sampler.seed = 8;
  EXPECT_NE(a.result.tokens, story.tell(s).result.tokens);
}

TEST(Generate, FinishesHaveNames) {
  EXPECT_STREQ(name_of(Finish::StopToken), "stop-token");
  EXPECT_STREQ(name_of(Finish::StopString), "stop-string");
  EXPECT_STREQ(name_of(Finish::Length), "length");
  EXPECT_STREQ(name_of(Finish::ContextFull), "context-full");
  EXPECT_STREQ(name_of(Finish::Cancelled), "cancelled");
}

}  // namespace
}  // namespace gimbal::test
