// Drafts of every source for many answers at once: each hears what it hears alone.
#include "scheduler/speculative_decoding.h"

#include "engine/drafts.h"
#include "scheduler/served.h"
#include "support/made_draft_head.h"
#include "support/nextn.h"

namespace gimbal::test {
namespace {

struct Answers {
  uint64_t drafted = 0, accepted = 0;
  SchedulerNumbers numbers;
};

constexpr const char* kPrompt = "Lily saw a cat. Tom saw a cat. Lily saw a cat. Tom saw a cat. Lily saw";

// Six repeating texts through a model with such drafts, of which `texts` may be of a model.
Answers serve(const std::string& name, const std::string& word, int texts, Drafting::Length length) {
  Registry registry{BackendPlaces{}};
  gimbal::EngineOptions o;
  o.backend = "cpu", o.threads = 1, o.verify = Verify::Never, o.run = serving_run(256, 32, 8, 0, 48);
  const ModelFile source = *open_model_file(name);
  auto drafts = open_drafts(registry, o, source, word, {}, texts);
  EXPECT_TRUE(drafts) << drafts.error().message;
  gimbal::Engine engine(registry, o);
  auto on = engine.load(source);
  EXPECT_TRUE(on) << on.error().message;
  SchedulerOptions options;
  options.drafts = {{}, length, (*drafts)->failed};
  if ((*drafts)->drafter)
    options.drafts.drafter = [&](const ScheduledRequest&) { return (*drafts)->drafter(); };
  Scheduler serving(model_of(*on), engine.on_device_lost(*on), options);
  gimbal::EngineOptions alone_options = o;
  alone_options.run = serving_run(256, 64, 1, 0, 64);
  gimbal::Engine other(registry, alone_options);
  auto reference = other.load(source);

  std::vector<GenerationRequest> requests;
  std::vector<std::unique_ptr<Heard>> heard;
  for (int i = 0; i < 6; i++) {
    GenerationRequest r;
    if (name == "default") r.prompt = any_tokenizer().encode(kPrompt);
    for (int t = 0; name != "default" && t < 20; t++) r.prompt.push_back(Token(5 + i + t % 5));
    r.max_tokens = 40, r.ignore_stop_tokens = true, r.logprobs = i % 3 - 1;
    r.sampler.greedy = i < 3, r.sampler.seed = uint64_t(i);
    requests.push_back(r), heard.push_back(std::make_unique<Heard>());
    serving.add(
        std::make_unique<ScheduledRequest>(uint64_t(i + 1), r, sink_of(*heard.back()), any_tokenizer(), 256));
  }
  while (!serving.idle()) EXPECT_TRUE(serving.step());
  Answers a{0, 0, serving.numbers()};
  for (size_t i = 0; i < requests.size(); i++) {
    expect_same(*heard[i], alone(*(*reference)->model, any_tokenizer(), requests[i]), requests[i]);
    if (heard[i]->end) a.drafted += heard[i]->end->drafted, a.accepted += heard[i]->end->accepted;
  }
  return a;
}

TEST(SpeculativeDecoding, OfNgramsAndOfAModel) {
  for (const std::string word : {"ngram", "auto", "default"}) {
    SCOPED_TRACE(word);
    const Answers a = serve("default", word, 4, Drafting::Length::Most);
    EXPECT_GT(a.accepted, 0u);
    EXPECT_LE(a.accepted, a.drafted);
    EXPECT_LT(a.numbers.steps, 240u) << "one for each token";
    serve("default", word, 2, Drafting::Length::Adapts);
  }
  EXPECT_EQ(serve("default", "off", 4, Drafting::Length::Most).drafted, 0u);
}

TEST(SpeculativeDecoding, ByTheFilesOwnLayers) {
  const std::string file = with_nextn(golden_dir() + "/more/arch/glm4moe.gguf");
  const Answers a = serve(file, "mtp", 3, Drafting::Length::Most);
  EXPECT_GT(a.drafted, 0u);
  EXPECT_EQ(a.numbers.tokens_generated, 240u);
}

TEST(SpeculativeDecoding, ByADraftHead) {
  for (const char* arch : {"eagle3", "dflash"}) {
    SCOPED_TRACE(arch);
    const std::string head = made_draft_head(*open_model_file("default")->file, arch);
    const Answers a = serve("default", head, 3, Drafting::Length::Most);
    EXPECT_GT(a.drafted, 0u);
    serve("default", head, 2, Drafting::Length::Adapts);
  }
}

TEST(SpeculativeDecoding, AModelDraftsForAsManyTextsAsItWasLoadedFor) {
  Registry registry{BackendPlaces{}};
  gimbal::EngineOptions o;
  o.backend = "cpu", o.threads = 1, o.verify = Verify::Never, o.run = serving_run(256, 8, 8);
  auto drafts = open_drafts(registry, o, *open_model_file("default"), "default", {}, 2);
  ASSERT_TRUE(drafts) << drafts.error().message;
  EXPECT_FALSE((*drafts)->drafting);
  auto a = (*drafts)->drafter(), b = (*drafts)->drafter();
  EXPECT_TRUE(a && b);
  EXPECT_FALSE((*drafts)->drafter());
  b = nullptr;
  EXPECT_TRUE((*drafts)->drafter());
}

// A drafter that records the texts that it reads.
class Reader final : public Drafter {
 public:
  explicit Reader(std::vector<std::vector<Token>>& read) : read_(read) {}
  Status read(std::span<const Token> text) override {
    return read_.emplace_back(text.begin(), text.end()), Done{};
  }
  Result<std::vector<Token>> propose(std::span<const Token>, int n) override {
    EXPECT_EQ(read_.size(), 1u);
    return std::vector<Token>(size_t(n), Token(1));
  }
  std::string name() const override { return "reader"; }

 private:
  std::vector<std::vector<Token>>& read_;
};

TEST(SpeculativeDecoding, ADrafterReadsThePromptOnceBeforeItGuesses) {
  RunOptions run = serving_run(256, 8, 8);
  run.drafts = 4;
  OnCpu on("default", run);
  std::vector<std::vector<Token>> read;
  SchedulerOptions options;
  options.drafts = {
      [&](const ScheduledRequest&) { return std::make_unique<Reader>(read); }, Drafting::Length::Most, {}};
  Scheduler serving(on.shared(), on.on_device_lost(), options);
  GenerationRequest r;
  r.prompt = {1, 2, 3}, r.max_tokens = 10, r.ignore_stop_tokens = true, r.sampler.greedy = true;
  Heard heard;
  serving.add(std::make_unique<ScheduledRequest>(1, r, sink_of(heard), any_tokenizer(), 256));
  for (int i = 0; i < 100 && !serving.idle(); i++) ASSERT_TRUE(serving.step());
  ASSERT_EQ(read.size(), 1u);
  // The text begins with the prompt.
  ASSERT_GE(read[0].size(), 3u);
  EXPECT_TRUE(std::equal(r.prompt.begin(), r.prompt.end(), read[0].begin()));
}

// A drafter whose device is lost: texts go on, and under strict they end with the reason.
class Lost final : public Drafter {
 public:
  Result<std::vector<Token>> propose(std::span<const Token>, int) override {
    return Error{Code::DeviceLost, "it is gone", ""};
  }
  std::string name() const override { return "lost"; }
};

TEST(SpeculativeDecoding, TextsGoOnWithoutDraftsOrEndUnderStrict) {
  for (const bool strict : {false, true}) {
    RunOptions run = serving_run(256, 8, 8);
    run.drafts = 4;
    OnCpu on("default", run), reference("default", serving_run(256, 64, 1, 0, 64));
    SchedulerOptions options;
    options.drafts = {[](const ScheduledRequest&) { return std::make_unique<Lost>(); },
                      Drafting::Length::Most,
                      [&](const Error& why) { return strict ? Status(why) : Status(Done{}); }};
    Scheduler serving(on.shared(), on.on_device_lost(), options);
    GenerationRequest r;
    r.prompt = {1, 2, 3}, r.max_tokens = 10, r.ignore_stop_tokens = true, r.sampler.greedy = true;
    Heard a, b;
    for (Heard* h : {&a, &b})
      serving.add(std::make_unique<ScheduledRequest>(h == &a ? 1 : 2, r, sink_of(*h), any_tokenizer(), 256));
    for (int i = 0; i < 100 && !serving.idle(); i++) ASSERT_TRUE(serving.step());
    EXPECT_TRUE(serving.idle());
    for (const Heard* h : {&a, &b}) {
      if (!strict) {
        expect_same(*h, alone(reference.model(), any_tokenizer(), r), r);
        continue;
      }
      ASSERT_TRUE(h->failed);
      EXPECT_EQ(h->failed->message, "it is gone");
    }
  }
}

}  // namespace
}  // namespace gimbal::test
