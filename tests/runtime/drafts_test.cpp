// Drafts never change a text: with every golden model, greedy and sampled, with penalties, whatever is
// drafted and how much of it, across rewinds, contexts that end, and devices that share a model.
#include <cstdio>
#include <random>

#include "runtime/generate.h"
#include "runtime/model_drafter.h"
#include "runtime/scripted_drafter.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

using Text = std::vector<int32_t>;

// Another drafter's guesses, cut anywhere.
class AnyLength final : public Drafter {
 public:
  AnyLength(std::unique_ptr<Drafter> drafter, unsigned seed) : drafter_(std::move(drafter)), random_(seed) {}
  Result<Text> propose(std::span<const int32_t> text, int n) override {
    return drafter_->propose(text, int(random_() % unsigned(n + 1)));
  }
  std::string name() const override { return drafter_->name(); }

 private:
  std::unique_ptr<Drafter> drafter_;
  std::mt19937 random_;
};

struct Told {
  Text tokens, held;  // of the text; in the session afterwards
  bool operator==(const Told&) const = default;
};

// Continues behind the session's tokens, for n tokens or until the context is full. `ended`: by this error.
Told tell(Session& session, const Text& prompt, const SamplerSettings& sampler, int n, Drafting* drafting,
          const char* ended = nullptr) {
  Told told;
  GenerateSettings s;
  s.sampler = sampler, s.max_tokens = n, s.drafting = drafting;
  const auto g = generate(session, nullptr, prompt, s, [&](std::string_view, Token t) {
    told.tokens.push_back(t);
    return true;
  });
  EXPECT_EQ(g ? "" : g.error().message, ended ? ended : "");
  told.held.assign(session.tokens().begin(), session.tokens().end());
  return told;
}

std::vector<SamplerSettings> samplers() {
  SamplerSettings greedy, usual, all, penalties, biased;
  greedy.greedy = true;
  usual.seed = 11, usual.temperature = 0.3f;
  all.seed = 12, all.top_k = 0, all.top_p = 0.9f;
  penalties.seed = 13, penalties.repeat_penalty = 1.3f, penalties.frequency_penalty = 0.2f;
  penalties.presence_penalty = 0.1f, penalties.penalty_window = 16;
  biased.seed = 14, biased.top_k = 100, biased.typical_p = 0.8f, biased.logit_bias = {{3, 1.5f}, {7, -2.f}};
  SamplerSettings mirostat, repeats, adaptive;  // which remember what was picked
  mirostat.seed = 15, mirostat.mirostat = 2, mirostat.mirostat_tau = 3;
  repeats.seed = 16, repeats.mirostat = 1, repeats.dry_multiplier = 0.8f, repeats.dry_allowed_length = 1;
  adaptive.seed = 17, adaptive.adaptive_target = 0.4f, adaptive.xtc_probability = 0.5f;
  adaptive.dynatemp_range = 0.3f, adaptive.top_n_sigma = 2;
  return {greedy, usual, all, penalties, biased, mirostat, repeats, adaptive};
}

// How often guesses are right, and whether they have any length. A negative number: n-grams.
struct Kind {
  double right;
  bool any_length;
};
constexpr Kind kKinds[] = {{1, false},  {1, true},   {0, true},  {0.5, false},
                           {0.5, true}, {0.8, true}, {-1, false}};

Drafting drafts(const Kind& kind, const Text& script, int vocabulary, unsigned seed) {
  std::unique_ptr<Drafter> d;
  if (kind.right < 0) d = std::make_unique<NgramDrafter>();
  else d = std::make_unique<ScriptedDrafter>(script, kind.right, vocabulary, seed);
  if (kind.any_length) d = std::make_unique<AnyLength>(std::move(d), seed);
  return Drafting(std::move(d), Drafting::Length::Most);
}

Text prompt_of(const Model& m, size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Text t;
  while (t.size() < n) t.push_back(int32_t(random() % unsigned(m.config().vocabulary)));
  return t;
}

struct Law {
  int texts = 0;
  DraftCounts counts;
};

// Two texts, the second behind a part of the first, without drafts and with every kind of them.
void check(Model& plain, Model& drafting, const std::vector<SamplerSettings>& samplers, int n, Law& law) {
  auto a = Session::create(plain), b = Session::create(drafting);
  ASSERT_TRUE(a && b);
  const int vocabulary = plain.config().vocabulary;
  const Text first = prompt_of(plain, 9, 1), second = prompt_of(plain, 5, 2);
  unsigned seed = 1;
  for (const SamplerSettings& s : samplers) {
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(testing::Message() << "seed " << s.seed << ", right " << kind.right
                                      << (kind.any_length ? ", any length" : ""));
      (*a)->rewind(0), (*b)->rewind(0);
      for (const Text* prompt : {&first, &second}) {
        const Text before((*a)->tokens().begin(), (*a)->tokens().end());
        const Told want = tell(**a, *prompt, s, n, nullptr);
        Text script = before;
        script.insert(script.end(), prompt->begin(), prompt->end());
        script.insert(script.end(), want.tokens.begin(), want.tokens.end());
        Drafting d = drafts(kind, script, vocabulary, seed++);
        const Told got = tell(**b, *prompt, s, n, &d);
        ASSERT_EQ(got.tokens, want.tokens);
        ASSERT_EQ(got.held, want.held);
        const DraftCounts& c = d.counts();
        EXPECT_TRUE(kind.right < 0 || c.drafted > 0);
        EXPECT_TRUE(kind.right != 1 || c.accepted == c.drafted) << c.accepted << " of " << c.drafted;
        EXPECT_TRUE(kind.right != 0 || c.accepted == 0) << c.accepted;
        EXPECT_EQ(c.tokens, want.tokens.size() - 1) << "the first comes with the prompt";
        law.counts.drafted += c.drafted, law.counts.accepted += c.accepted, law.counts.steps += c.steps;
        law.texts++;
        const int keep = (*a)->position() - 15 - int(seed % 61);
        (*a)->rewind(keep), (*b)->rewind(keep);
      }
    }
  }
}

RunOptions options(int drafts, int context = 256) {
  RunOptions o;
  o.context = context, o.batch = 48, o.drafts = drafts;
  return o;
}

void report(const char* what, const Law& law) {
  std::printf("%s: %d texts, %llu of %llu drafts kept in %llu steps\n", what, law.texts,
              static_cast<unsigned long long>(law.counts.accepted),
              static_cast<unsigned long long>(law.counts.drafted),
              static_cast<unsigned long long>(law.counts.steps));
}

TEST(Drafts, NeverChangeATextOfAnyGoldenModel) {
  Law law;
  int models = 0, files = 0;
  for (const char* folder : {"stories", "arch", "more/arch", "quant"})
    for (const std::string& path : golden_files(folder, ".json")) {
      if (fewer_cases() && files++ % 3) continue;
      const std::string file =
          golden_dir() + "/" + folder + "/" + read_json(path)["model"].get<std::string>();
      SCOPED_TRACE(file);
      EngineOptions plain, with;
      plain.run = options(0), with.run = options(1 + models % 15);
      auto a = open_engine(file, plain), b = open_engine(file, with);
      ASSERT_TRUE(a) << a.error().message;
      ASSERT_TRUE(b) << b.error().message;
      // One way of sampling for most models, in turns: all of them are tried below.
      const auto all = samplers();
      check(*a->model, *b->model, {all[size_t(models) % all.size()]}, 18, law);
      if (HasFatalFailure()) return;
      models++;
    }
  report("golden models", law);
  std::printf("%d models\n", models);
  EXPECT_GE(models, fewer_cases() ? 10 : 20);
  EXPECT_GT(law.counts.accepted, law.counts.drafted / 10);
  EXPECT_LT(law.counts.accepted, law.counts.drafted);
}

// Across the places where states are kept, and to the end of the context.
TEST(Drafts, NeverChangeALongTextHoweverItIsSampled) {
  for (const char* model : {"stories/stories260K-q8_0", "more/arch/mamba2", "more/arch/jamba",
                            "more/arch/lfm2moe", "more/arch/qwen35", "arch/gemma3"}) {
    SCOPED_TRACE(model);
    EngineOptions plain, with;
    plain.run = options(0, 300), with.run = options(7, 300);
    auto a = open_engine(golden_dir() + "/" + model + ".gguf", plain),
         b = open_engine(golden_dir() + "/" + model + ".gguf", with);
    ASSERT_TRUE(a && b);
    Law law;
    auto ways = samplers();
    if (fewer_cases() || std::string(model).starts_with("more")) ways = {ways[3]};
    check(*a->model, *b->model, ways, 400, law);
    if (HasFatalFailure()) return;
    report(model, law);
  }
}

TEST(Drafts, NeverChangeATextOfAModelOnSeveralDevices) {
  for (const char* model : {"stories/stories260K-f32", "more/arch/qwen35"}) {
    SCOPED_TRACE(model);
    const ModelSource file = open_file(golden_dir() + "/" + model + ".gguf");
    const auto one = open_one("cpu", 0, "threads=1"), other = open_one("cpu", 0, "threads=1");
    const int layers = configure(file)->layers;
    auto plain = make_model_plan(file, *one, options(0));
    ASSERT_TRUE(plain);
    auto a = Model::load(std::move(*plain), file);
    ASSERT_TRUE(a);
    for (int here : {0, 1, layers}) {
      auto b = load_placed(file, {{one.get(), here, ""}, {other.get(), layers - here, ""}}, options(6));
      ASSERT_TRUE(b) << b.error().message;
      Law law;
      check(**a, **b, {samplers()[1], samplers()[3]}, 20, law);
      if (HasFatalFailure()) return;
      report(model, law);
    }
  }
}

// Through generate(): stop strings and tokens, the sink, and every way to finish.
TEST(Drafts, ChangeNothingOfWhatGenerateDoes) {
  EngineOptions o;
  o.run = options(7, 100);
  auto e = open_engine(golden_dir() + "/stories/stories260K-f32.gguf", o);
  ASSERT_TRUE(e);
  auto tokenizer = *Tokenizer::create(e->file->metadata());
  auto session = *Session::create(*e->model);
  const Text prompt = tokenizer->encode("Once upon a time");
  struct Seen {
    std::vector<std::pair<std::string, Token>> pieces;
    Text tokens, held;
    Finish finish;
    bool operator==(const Seen&) const = default;
  };
  uint64_t accepted = 0;
  auto tell = [&](GenerateSettings s, Drafting* d, int cancel_after) {
    session->rewind(0);
    s.drafting = d;
    Seen seen;
    auto g = generate(*session, *tokenizer, prompt, s, [&](std::string_view text, Token t) {
      seen.pieces.emplace_back(text, t);
      return int(seen.pieces.size()) != cancel_after;
    });
    EXPECT_TRUE(g) << g.error().message;
    if (!g) return seen;
    seen.tokens = g->tokens, seen.finish = g->finish;
    seen.held.assign(session->tokens().begin(), session->tokens().end());
    accepted += g->drafts.accepted;
    return seen;
  };
  GenerateSettings greedy;
  greedy.sampler.greedy = true;
  const Seen whole = tell(greedy, nullptr, -1);
  ASSERT_EQ(whole.finish, Finish::ContextFull);
  std::string text;
  for (const auto& [piece, token] : whole.pieces) text += piece;
  Text script = prompt;
  script.insert(script.end(), whole.tokens.begin(), whole.tokens.end());

  std::vector<std::pair<GenerateSettings, int>> ways = {{greedy, -1}, {greedy, 1}, {greedy, 2}, {greedy, 30}};
  for (int n : {0, 1, 2, 9, 40}) ways.push_back({greedy, -1}), ways.back().first.max_tokens = n;
  for (size_t at : {20u, 41u, 90u})
    ways.push_back({greedy, -1}), ways.back().first.stops = {"never", text.substr(at, 7)};
  // A token that ends the text, more and more likely.
  for (float bias : {4.f, 6.f, 8.f, 10.f, 15.f}) {
    GenerateSettings stopped = greedy;
    stopped.sampler.logit_bias = {{tokenizer->bos(), bias}}, ways.push_back({stopped, -1});
    stopped.ignore_stop_tokens = true, stopped.max_tokens = 50, ways.push_back({stopped, -1});
  }
  std::set<Finish> finishes;
  for (const auto& [settings, cancel_after] : ways) {
    const Seen want = tell(settings, nullptr, cancel_after);
    finishes.insert(want.finish);
    for (unsigned seed = 1; seed < (fewer_cases() ? 3 : 8); seed++) {
      Drafting d = drafts(kKinds[seed % std::size(kKinds)], script, 512, seed);
      ASSERT_TRUE(tell(settings, &d, cancel_after) == want)
          << "seed " << seed << ", finish " << name_of(want.finish);
    }
  }
  EXPECT_EQ(finishes.size(), 5u) << "not every way to finish was seen";
  EXPECT_GT(accepted, fewer_cases() ? 100u : 500u);
}

// An adapting length asks a clock, so a text must not depend on what it answers.
TEST(Drafts, OfAdaptingLengthNeverChangeAText) {
  EngineOptions o;
  o.run = options(15, 512);
  auto e = open_engine(golden_dir() + "/stories/stories260K-q8_0.gguf", o);
  ASSERT_TRUE(e);
  auto session = *Session::create(*e->model);
  const Text prompt = prompt_of(*e->model, 12, 3);
  Drafting ngram(std::make_unique<NgramDrafter>());
  for (const SamplerSettings& s : samplers()) {
    session->rewind(0);
    const Told want = tell(*session, prompt, s, 480, nullptr);
    Text script = prompt;
    script.insert(script.end(), want.tokens.begin(), want.tokens.end());
    Drafting scripted(std::make_unique<ScriptedDrafter>(script, 0.8, 512));
    for (Drafting* d : {&ngram, &scripted}) {
      session->rewind(0);
      ASSERT_EQ(tell(*session, prompt, s, 480, d), want);
    }
  }
}

// Another model drafts: one that is nearly the same, and recurrent ones for themselves, which are always
// right where the likeliest token is taken.
TEST(Drafts, OfAnotherModelNeverChangeAText) {
  struct Pair {
    const char *model, *drafter;
  };
  for (const Pair& p : {Pair{"stories/stories260K-f32", "stories/stories260K-q4_0"},
                        {"more/arch/jamba", "more/arch/jamba"},
                        {"more/arch/mamba2", "more/arch/mamba2"}}) {
    SCOPED_TRACE(p.model);
    EngineOptions with, of_drafter;
    with.run = options(5), of_drafter.run = options(1);
    auto a = open_engine(golden_dir() + "/" + p.model + ".gguf", with),
         b = open_engine(golden_dir() + "/" + p.drafter + ".gguf", of_drafter);
    ASSERT_TRUE(a && b);
    auto session = *Session::create(*a->model);
    Drafting drafting(std::make_unique<ModelDrafter>(*Session::create(*b->model), "other"),
                      Drafting::Length::Most);
    const bool same = std::string(p.model) == p.drafter;
    for (const SamplerSettings& s : samplers()) {
      int kept = 0;  // of the first text: the second continues a part of it
      for (unsigned seed : {1u, 2u}) {
        session->rewind(kept);
        const Text prompt = prompt_of(*a->model, 7, seed);
        const Told want = tell(*session, prompt, s, 60, nullptr);
        session->rewind(kept);
        const DraftCounts before = drafting.counts();
        ASSERT_EQ(tell(*session, prompt, s, 60, &drafting), want);
        const DraftCounts c = drafting.counts() - before;
        EXPECT_GT(c.drafted, 0u);
        if (s.greedy) {
          EXPECT_GT(c.accepted, c.drafted / 3);
          EXPECT_TRUE(!same || c.accepted == c.drafted) << c.accepted << " of " << c.drafted;
        }
        kept = session->position() - 33;
      }
    }
    EXPECT_FALSE(drafting.ended());
  }
}

// The place of a mark can come again with other tokens before it.
TEST(Drafts, AMarkIsForgottenWithTheTokensBeforeIt) {
  EngineOptions o;
  o.run = options(1);
  auto e = open_engine(golden_dir() + "/more/arch/mamba2.gguf", o);
  ASSERT_TRUE(e) << e.error().message;
  const Text first = prompt_of(*e->model, 30, 1), second = prompt_of(*e->model, 20, 2), last{7};
  auto add = [](Session& s, const Text& tokens) {
    std::vector<float> logits;
    auto ok = s.advance(tokens, Session::Wanted::Last,
                        [&](size_t, std::span<const float> l) { logits.assign(l.begin(), l.end()); });
    EXPECT_TRUE(ok) << ok.error().message;
    return logits;
  };
  auto session = *Session::create(*e->model);
  add(*session, first);
  session->mark();
  add(*session, last);
  session->rewind(10);
  add(*session, second);
  add(*session, last);
  session->rewind(30);  // where the mark was
  const auto got = add(*session, last);
  session->rewind(0);
  add(*session, Text(first.begin(), first.begin() + 10));
  add(*session, second);
  EXPECT_EQ(bits_differ(got, add(*session, last)), "");
}

// A drafter that fails ends the drafts, not the text.
TEST(Drafts, FailWithoutHarmToTheText) {
  struct Fails final : Drafter {
    Result<Text> propose(std::span<const int32_t>, int) override {
      if (calls++ < 3) return Text{1, 2};
      return Error{Code::DeviceLost, "gone", ""};
    }
    std::string name() const override { return "fails"; }
    int calls = 0;
  };
  EngineOptions o;
  o.run = options(4);
  auto e = open_engine(golden_dir() + "/stories/stories260K-q8_0.gguf", o);
  ASSERT_TRUE(e);
  auto session = *Session::create(*e->model);
  const Told want = tell(*session, {5, 6}, samplers()[0], 30, nullptr);
  session->rewind(0);
  std::vector<std::string> told;
  Drafting d(std::make_unique<Fails>(), Drafting::Length::Most, [&](const Error& why) -> Status {
    told.push_back(why.message);
    return Done{};
  });
  EXPECT_EQ(tell(*session, {5, 6}, samplers()[0], 30, &d), want);
  EXPECT_EQ(told, std::vector<std::string>{"gone"}) << "said once";
  EXPECT_TRUE(d.ended());
  EXPECT_EQ(d.counts().drafted, 6u);
  // Without a listener, the text continues, too.
  session->rewind(0);
  Drafting quiet(std::make_unique<Fails>(), Drafting::Length::Most);
  EXPECT_EQ(tell(*session, {5, 6}, samplers()[0], 30, &quiet), want);
  EXPECT_TRUE(quiet.ended());
  // Under strict the text ends, and so does each one after it.
  session->rewind(0);
  Drafting strict(std::make_unique<Fails>(), Drafting::Length::Most,
                  [](const Error& why) -> Status { return why; });
  const Told begun = tell(*session, {5, 6}, samplers()[0], 30, &strict, "gone");
  EXPECT_GE(begun.tokens.size(), 4u);
  EXPECT_TRUE(std::equal(begun.tokens.begin(), begun.tokens.end(), want.tokens.begin()));
  session->rewind(0);
  EXPECT_EQ(tell(*session, {5, 6}, samplers()[0], 30, &strict, "gone").tokens.size(), 0u);
}

// Lines that come again and again: n-grams guess them, and with drafts that are kept the text is the same.
TEST(Drafts, OfRepeatingLinesAreKept) {
  uint64_t kept = 0;
  for (const char* model : {"stories/stories260K-f32", "more/arch/mamba2"}) {
    SCOPED_TRACE(model);
    EngineOptions o;
    o.run = options(15);
    auto e = open_engine(golden_dir() + "/" + model + ".gguf", o);
    ASSERT_TRUE(e);
    auto session = *Session::create(*e->model);
    const Text line = prompt_of(*e->model, 11, 4);
    Text prompt;
    for (int i = 0; i < 5; i++) prompt.insert(prompt.end(), line.begin(), line.end());
    prompt.resize(prompt.size() - 7);  // in the middle of the last line
    // What a person would copy: the line's next token is far likelier than any other.
    SamplerSettings s = samplers()[1];
    for (int32_t t : line) s.logit_bias.push_back({t, 12.f});
    for (const SamplerSettings& way : {s, samplers()[0]}) {
      session->rewind(0);
      const Told want = tell(*session, prompt, way, 90, nullptr);
      session->rewind(0);
      Drafting d(std::make_unique<NgramDrafter>(), Drafting::Length::Most);
      ASSERT_EQ(tell(*session, prompt, way, 90, &d), want);
      const DraftCounts& c = d.counts();
      EXPECT_GT(c.drafted, 0u);
      kept += way.greedy ? c.accepted : 0;
    }
  }
  EXPECT_GT(kept, 20u) << "greedy texts of such models repeat themselves";
}

}  // namespace
}  // namespace gimbal::test
