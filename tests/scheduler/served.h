// Requests that are served step by step, what each of them hears, and what it would hear alone.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "engine/backend_places.h"
#include "engine/engine.h"
#include "runtime/generate.h"
#include "runtime/likelihood.h"
#include "scheduler/scheduler.h"
#include "support/golden.h"

namespace gimbal::test {

constexpr const char* kStories = "stories/stories260K-q8_0";

// An engine with the CPU and nothing that was found out before.
class OnCpu {
 public:
  explicit OnCpu(const std::string& model, const RunOptions& run, int threads = 1,
                 const std::vector<Lora>& lora = {})
      : registry_(BackendPlaces{}), engine_(registry_, options(run, threads)) {
    auto file = open_model_file(model == "default" ? model : golden_dir() + "/" + model + ".gguf",
                                {.kernel_config = "", .lora = lora});
    auto loaded = file ? engine_.load(*file) : Result<LoadedModelPtr>(file.error());
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message;
      std::exit(1);
    }
    on_ = *loaded;
  }
  gimbal::Engine& engine() { return engine_; }
  const LoadedModelPtr& on() { return on_; }
  ModelPtr shared() { return model_of(on_); }
  OnDeviceLost on_device_lost() { return engine_.on_device_lost(on_); }
  Model& model() { return *on_->model; }

 private:
  static gimbal::EngineOptions options(const RunOptions& run, int threads) {
    gimbal::EngineOptions o;
    o.backend = "cpu", o.threads = threads, o.verify = Verify::Never, o.run = run;
    return o;
  }
  Registry registry_;
  gimbal::Engine engine_;
  LoadedModelPtr on_;
};

inline RunOptions serving_run(int context, int requests, int sequences, int64_t cache_positions = 0,
                              int batch = 48) {
  RunOptions o;
  o.context = context, o.logit_rows = requests, o.sequences = sequences, o.batch = batch;
  o.cache_positions = cache_positions;
  return o;
}

inline std::unique_ptr<Tokenizer> tokenizer_of(const LoadedModelPtr& on) {
  return *Tokenizer::create(on->source.file->metadata());
}

// Models of tests may have no words of their own: these have at most as many tokens.
inline const Tokenizer& any_tokenizer() {
  static const auto file = *open_model_file(golden_dir() + "/" + kStories + ".gguf");
  static const std::unique_ptr<Tokenizer> one = *Tokenizer::create(file.file->metadata());
  return *one;
}

// What a request's sink heard.
struct Heard {
  std::vector<Token> tokens;
  std::vector<std::string> texts;
  std::vector<float> logprobs;
  std::vector<std::vector<TokenProbability>> top;
  std::vector<double> memories;    // of the sampler, behind each token
  std::vector<TokenEvent> scored;  // the prompt, and the stop token
  std::vector<float> behind;       // alone: log-probabilities of all tokens in the stop token's place
  std::optional<GenerationEnd> end;
  std::optional<Error> failed;
  int begun = 0;

  bool over() const { return end || failed; }
  std::string text() const {
    std::string all;
    for (const std::string& t : texts) all += t;
    return all + (end ? end->text : "");
  }
};

// `first`: the index that the first token must have; `scored`: log-probabilities that were told before.
inline GenerationSink sink_of(Heard& h, int first = 0, std::function<void()> heard = {}, int scored = 0) {
  return {[&h, first, heard](const TokenEvent& t) {
            EXPECT_FALSE(h.over());
            EXPECT_EQ(h.begun, 1) << "who is suspected when a step ends the process is said before it";
            EXPECT_EQ(t.index, first + int(h.tokens.size())) << "a token is missing, or told twice";
            h.tokens.push_back(t.token), h.texts.push_back(t.text);
            h.logprobs.push_back(t.logprob), h.top.push_back(t.top);
            h.memories.push_back(t.memory);
            if (heard) heard();
          },
          [&h](const GenerationEnd& e) {
            EXPECT_FALSE(h.over()) << "two last words";
            h.end = e;
          },
          [&h](const Error& e) {
            EXPECT_FALSE(h.over()) << "two last words";
            h.failed = e;
          },
          [&h] { h.begun++; },
          [&h, scored](const TokenEvent& t) {
            EXPECT_FALSE(h.over());
            EXPECT_EQ(h.begun, 1);
            const size_t before = size_t(scored) + h.scored.size() + 1;
            EXPECT_GE(size_t(t.index), before) << "a token is missing, or told twice";
            h.scored.push_back(t);
          }};
}

// Of the request's grammar, at the beginning of a text.
inline std::optional<Constraint> constraint_of(const GenerationRequest& r, const Tokenizer& tokenizer) {
  if (r.grammar.empty()) return {};
  auto made = Constraint::create(*Grammar::gbnf(r.grammar), TokenTree::create(tokenizer, tokenizer.size()));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

// Through the loop that `gimbal run` has, and probabilities as perplexities are computed. `model` has rows of
// logits for a whole batch.
inline Heard alone(Model& model, const Tokenizer& tokenizer, const GenerationRequest& r) {
  auto session = *Session::create(model);
  EXPECT_TRUE(session->adapt(r.adapters));
  GenerateSettings s;
  static_cast<TextSettings&>(s) = r;
  s.logprobs = -1;
  auto constraint = constraint_of(r, tokenizer);
  if (constraint) s.constraint = &*constraint;
  Heard h;
  auto g =
      generate(*session, tokenizer, InputView(r.prompt, r.embeddings), s, [&](std::string_view text, Token) {
        h.texts.emplace_back(text);
        return true;
      });
  EXPECT_TRUE(g) << g.error().message;
  if (!g) return h;
  h.tokens = g->tokens;
  h.end = GenerationEnd{};
  h.end->finish = g->finish, h.end->tokens = int(g->tokens.size()), h.end->prompt_tokens = g->prompt_tokens;
  if (h.texts.size() > h.tokens.size()) h.end->text = h.texts.back(), h.texts.pop_back();
  if (r.logprobs < 0) return h;

  std::vector<Token> all = r.prompt;
  all.insert(all.end(), h.tokens.begin(), h.tokens.end());
  if (int(all.size()) > model.context()) all.resize(size_t(model.context()));
  session->rewind(0);
  auto ok = session->advance(all, Session::Wanted::All, [&](size_t i, std::span<const float> logits) {
    const double sum = log_sum_exp(logits);
    if (i + 1 == r.prompt.size() + h.tokens.size())
      for (float x : logits) h.behind.push_back(float(x - sum));
    if (i + 1 >= r.prompt.size() + h.tokens.size()) return;
    std::vector<Token> order(logits.size());
    for (size_t t = 0; t < order.size(); t++) order[t] = Token(t);
    std::stable_sort(order.begin(), order.end(),
                     [&](Token x, Token y) { return logits[size_t(x)] > logits[size_t(y)]; });
    std::vector<TokenProbability> top;
    for (int k = 0; k < r.logprobs; k++)
      top.push_back({order[size_t(k)], float(logits[size_t(order[size_t(k)])] - sum)});
    const float logprob = float(logits[size_t(all[i + 1])] - sum);
    if (i + 1 < r.prompt.size()) h.scored.push_back({all[i + 1], int(i + 1), "", logprob, top, "", 0});
    else h.logprobs.push_back(logprob), h.top.push_back(top);
  });
  EXPECT_TRUE(ok) << ok.error().message;
  return h;
}

inline bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

inline void expect_same_top(const std::vector<TokenProbability>& heard,
                            const std::vector<TokenProbability>& want) {
  ASSERT_EQ(heard.size(), want.size());
  for (size_t k = 0; k < heard.size(); k++) {
    ASSERT_EQ(heard[k].token, want[k].token);
    ASSERT_TRUE(same_bits(heard[k].logprob, want[k].logprob));
  }
}

// Each token of the prompt once, with the bits that are computed alone, and the stop token.
inline void expect_scored(const Heard& heard, const Heard& want, const GenerationRequest& r) {
  const size_t before = size_t(r.scored), all = r.scores_prompt ? r.prompt.size() - 1 : 0;
  const bool cancelled = heard.end->finish == Finish::Cancelled;
  const bool stop = r.scores_prompt && heard.end->finish == Finish::StopToken;
  if (!cancelled) { ASSERT_EQ(before + heard.scored.size(), all + stop); }
  for (size_t i = 0; i < heard.scored.size(); i++) {
    const TokenEvent& told = heard.scored[i];
    if (before + i < all) {
      const TokenEvent& one = want.scored[before + i];
      ASSERT_EQ(told.token, one.token);
      ASSERT_EQ(told.index, one.index);
      ASSERT_TRUE(same_bits(told.logprob, one.logprob)) << "token " << told.index << " of the prompt";
      expect_same_top(told.top, one.top);
    } else if (stop) {
      ASSERT_EQ(size_t(told.index), r.prompt.size() + want.tokens.size());
      ASSERT_TRUE(same_bits(told.logprob, want.behind.at(size_t(told.token)))) << "the stop token";
    }
  }
}

// What was heard is what comes alone, or its beginning where it was cancelled, without the `written` tokens
// that were not told again.
inline void expect_same(const Heard& heard, const Heard& want, const GenerationRequest& r) {
  ASSERT_FALSE(heard.failed) << heard.failed->message;
  ASSERT_TRUE(heard.end) << "no last word";
  const size_t written = r.written.size();
  const bool cancelled = heard.end->finish == Finish::Cancelled;
  ASSERT_LE(written + heard.tokens.size(), want.tokens.size());
  if (!cancelled) {
    EXPECT_EQ(written + heard.tokens.size(), want.tokens.size());
    EXPECT_STREQ(name_of(heard.end->finish), name_of(want.end->finish));
    EXPECT_EQ(heard.end->text, want.end->text);
    EXPECT_EQ(heard.end->tokens, want.end->tokens);
    EXPECT_EQ(heard.end->finish == Finish::StopString, !heard.end->stop.empty());
  }
  EXPECT_EQ(heard.end->prompt_tokens, want.end->prompt_tokens);
  expect_scored(heard, want, r);
  for (size_t i = 0; i < heard.tokens.size(); i++) {
    ASSERT_EQ(heard.tokens[i], want.tokens[written + i]) << "token " << i;
    ASSERT_EQ(heard.texts[i], want.texts[written + i]) << "text " << i;
    if (r.logprobs < 0) continue;
    ASSERT_TRUE(same_bits(heard.logprobs[i], want.logprobs[written + i])) << "probability " << i;
    expect_same_top(heard.top[i], want.top[written + i]);
  }
}

// Requests of every kind, of which some begin alike.
class Requests {
 public:
  Requests(unsigned seed, int vocabulary, int longest)
      : r_(seed), vocabulary_(vocabulary), longest_(longest) {
    for (int i = 0; i < 3; i++) beginnings_.push_back(some_tokens(1 + any(longest_ * 2 / 3)));
  }
  int any(int n) { return int(r_() % unsigned(std::max(1, n))); }

  bool grammars = false;  // some have one

  GenerationRequest next() {
    GenerationRequest r;
    if (any(4)) r.prompt = beginnings_[size_t(any(3))];
    if (any(3) == 0) r.prompt.resize(1 + size_t(any(int(r.prompt.size()))), 3);
    const auto more = some_tokens(any(longest_ - int(r.prompt.size())));
    if (r.prompt.empty() || any(3)) r.prompt.insert(r.prompt.end(), more.begin(), more.end());
    if (r.prompt.empty()) r.prompt = {1};
    SamplerSettings& s = r.sampler;
    s.seed = r_();
    if (any(4) == 0) s.temperature = 0;
    else s.temperature = 0.5f + 0.25f * float(any(6));
    if (any(4) == 0) s.top_k = any(2) ? 0 : 100;
    if (any(4) == 0) s.repeat_penalty = 1.2f, s.penalty_window = any(2) ? -1 : 20;
    if (any(6) == 0) s.frequency_penalty = 0.4f;
    if (any(6) == 0) s.logit_bias = {{any(vocabulary_), 4.0f}, {any(vocabulary_), -100.0f}};
    if (any(3) == 0) r.stops = {"the", " a"};
    if (any(8) == 0) r.stops = {"\n", "was not there", "."};
    r.max_tokens = any(10) == 0 ? -1 : any(40);
    r.ignore_stop_tokens = any(3) == 0;
    if (any(3) == 0) r.logprobs = any(6);
    r.scores_prompt = r.logprobs >= 0 && s.seed % 3;
    if (grammars && any(4) == 0)
      r.grammar = any(2) ? "root ::= (\" \"? [a-z]+)+ \".\"" : "root ::= \"{\" [0-9]+ (\", \" [0-9]+)* \"}\"";
    r.client = std::string(1, char('a' + any(3)));
    return r;
  }

 private:
  std::vector<Token> some_tokens(int n) {
    std::vector<Token> t;
    for (int i = 0; i < n; i++) t.push_back(Token(any(vocabulary_)));
    return t;
  }
  std::mt19937 r_;
  const int vocabulary_, longest_;
  std::vector<std::vector<Token>> beginnings_;
};

}  // namespace gimbal::test
