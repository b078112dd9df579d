// Many requests served at once: each hears the tokens, texts and probabilities that it would hear alone, bit
// for bit, whatever the others do, however often it gives up its place, and whatever it shares.
#include "scheduler/scheduler.h"

#include <filesystem>

#include "runtime/model_drafter.h"
#include "runtime/scripted_drafter.h"
#include "scheduler/served.h"
#include "store/page_folder.h"

namespace gimbal::test {
namespace {

struct Setting {
  RunOptions run;
  unsigned seed;
  std::string model = kStories;
  int requests = 60, threads = 1, prompt_rows = 16;
  Drafting::Length draft_length = Drafting::Length::Most;  // with RunOptions::drafts
  std::string store = {};                                  // the folder of a prefix store
  uint64_t store_bytes = uint64_t(1) << 30;
};

struct Seen {
  SchedulerNumbers numbers;
  int cancelled = 0, compared = 0, scored = 0, resumed = 0, most_running = 0;
  std::map<Finish, int> ends;
  uint64_t drafted = 0, accepted = 0, stored = 0;
};

// Guesses that are right, wrong, or right as often as not, of any length; of some texts none, and of some
// from n-grams.
class AnyDrafter final : public Drafter {
 public:
  AnyDrafter(std::vector<Token> text, int vocabulary, unsigned seed)
      : random_(seed),
        scripted_(std::move(text), std::array{1.0, 0.8, 0.5, 0.0}[seed % 4], vocabulary, seed) {}
  Result<std::vector<Token>> propose(std::span<const Token> text, int n) override {
    n = std::min(n, int(random_() % 9));
    return random_() % 8 == 0 ? ngrams_.propose(text, n) : scripted_.propose(text, n);
  }
  std::string name() const override { return "any"; }

 private:
  std::mt19937 random_;
  ScriptedDrafter scripted_;
  NgramDrafter ngrams_;
};

Seen serve(const Setting& s) {
  OnCpu many(s.model, s.run, s.threads);
  RunOptions one = serving_run(s.run.context, 64, 1, 0, 64);
  if (s.run.cache_positions) one.context = Scheduler::capacity(many.model().plan());
  one.cache_type = s.run.cache_type;
  OnCpu reference(s.model, one);
  const ModelPlan& plan = many.model().plan();
  const int capacity = Scheduler::capacity(plan), vocabulary = plan.config.vocabulary;
  Requests requests(s.seed, vocabulary, capacity);
  requests.grammars = s.model == kStories;  // whose tokens are those of the tokenizer

  struct One {
    GenerationRequest request;
    Heard heard, want;
  };
  std::vector<std::unique_ptr<One>> all;
  SchedulerOptions options{s.prompt_rows, 1000};
  options.drafts.length = s.draft_length;
  if (s.run.drafts)
    options.drafts.drafter = [&](const ScheduledRequest& g) -> std::unique_ptr<Drafter> {
      const One& one = *all[g.id - 1];
      std::vector<Token> text = one.request.prompt;
      text.insert(text.end(), one.want.tokens.begin(), one.want.tokens.end());
      if (g.id % 7 == 0) return nullptr;
      return std::make_unique<AnyDrafter>(std::move(text), vocabulary, s.seed + unsigned(g.id));
    };
  PageStore* store = nullptr;
  std::unique_ptr<PrefixStore> prefixes;
  if (!s.store.empty()) {
    auto pages = PageStore::create(*PageFolder::open({s.store, s.store_bytes, false, {}}),
                                   [](const std::string& note) { ADD_FAILURE() << note; });
    store = pages->get();
    prefixes = *PrefixStore::create(std::move(*pages), s.model, many.model());
    options.prefixes = prefixes.get();
  }
  Scheduler serving(many.shared(), many.on_device_lost(), options);
  Seen seen;
  for (int steps = 0; int(all.size()) < s.requests || !serving.idle(); steps++) {
    if (testing::Test::HasFailure() || steps > 100000) break;
    // Drafts have a part in steps without prompts: there must be some.
    const bool none = s.run.drafts && requests.any(6);
    for (int n = none ? 0 : requests.any(4); n-- > 0 && int(all.size()) < s.requests;) {
      auto o = std::make_unique<One>();
      o->request = requests.next();
      // No step with a prompt has drafts, and prompts that are scored take many.
      if (s.run.drafts && all.size() % 7) o->request.scores_prompt = false;
      o->want = alone(reference.model(), any_tokenizer(), o->request);
      if (requests.any(4) == 0) {  // an engine was lost that had told a part of it
        const auto& tokens = o->want.tokens;
        o->request.written.assign(tokens.begin(), tokens.begin() + requests.any(int(tokens.size()) + 1));
        seen.resumed += !o->request.written.empty();
        const size_t whole = o->request.prompt.size() - 1;
        if (o->request.scores_prompt) o->request.scored = int(o->request.written.empty() ? whole / 2 : whole);
      }
      EXPECT_TRUE(ScheduledRequest::check(o->request, vocabulary, 0, capacity));
      all.push_back(std::move(o));
      One& added = *all.back();
      serving.add(std::make_unique<ScheduledRequest>(
          all.size(), added.request,
          sink_of(added.heard, int(added.request.written.size()), {}, added.request.scored), any_tokenizer(),
          capacity, constraint_of(added.request, any_tokenizer())));
    }
    if (requests.any(12) == 0 && !all.empty()) serving.cancel(uint64_t(1 + requests.any(int(all.size()))));
    auto ok = serving.step();
    EXPECT_TRUE(ok) << ok.error().message;
    if (store) store->wait();  // which pages are there must not depend on the disk's speed
    seen.most_running = std::max(seen.most_running, serving.numbers().running);
  }
  uint64_t told = 0;
  for (const auto& o : all) {
    expect_same(o->heard, o->want, o->request);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "request " << &o - &all[0] + 1 << ", seed " << s.seed;
      break;
    }
    told += o->heard.tokens.size();
    seen.scored += int(o->heard.scored.size());
    seen.compared += int(o->heard.tokens.size());
    seen.ends[o->heard.end->finish]++;
    seen.drafted += o->heard.end->drafted, seen.accepted += o->heard.end->accepted;
    seen.stored += uint64_t(o->heard.end->stored_tokens);
  }
  seen.numbers = serving.numbers();
  EXPECT_EQ(seen.numbers.requests, uint64_t(s.requests));
  EXPECT_EQ(seen.numbers.tokens_generated, told);
  EXPECT_EQ(seen.numbers.running + seen.numbers.waiting, 0);
  EXPECT_EQ(seen.numbers.pages_running, 0);
  std::printf(
      "%d tokens compared in %d steps; %d at once; %d tokens of prompts shared of %d; %d preemptions, "
      "%d resumed, %d cancelled\n",
      seen.compared, int(seen.numbers.steps), seen.most_running, int(seen.numbers.shared_tokens),
      int(seen.numbers.prompt_tokens), int(seen.numbers.preemptions), seen.resumed,
      seen.ends[Finish::Cancelled]);
  if (s.run.drafts) std::printf("%d of %d drafted tokens kept\n", int(seen.accepted), int(seen.drafted));
  // Whether an adapting length drafts at all is a question of the times that this machine needs.
  if (s.run.drafts == 0 || s.draft_length == Drafting::Length::Most) {
    EXPECT_EQ(s.run.drafts > 0, seen.drafted > 0);
  }
  EXPECT_LE(seen.accepted, seen.drafted);
  EXPECT_GT(seen.compared, s.requests);
  if (s.run.drafts == 0) { EXPECT_GT(seen.scored, s.requests); }
  EXPECT_GT(seen.numbers.shared_tokens, 0u);
  EXPECT_GT(seen.resumed, 0);
  EXPECT_GT(seen.ends[Finish::Cancelled], 0);
  return seen;
}

RunOptions drafted(RunOptions run, int drafts) {
  run.drafts = drafts;
  return run;
}

std::vector<unsigned> seeds(std::vector<unsigned> all) {
  if (fewer_cases()) all.resize(1);
  return all;
}

TEST(Scheduler, RandomRequestsHearWhatTheyHearAlone) {
  std::map<Finish, int> ends;
  for (unsigned seed : seeds({1, 2, 3})) {
    const Seen n = serve({serving_run(256, 8, 12), seed});
    EXPECT_EQ(n.most_running, 8);
    for (auto [finish, count] : n.ends) ends[finish] += count;
  }
  // As many rows of prompts as times suggest.
  serve({serving_run(256, 8, 12), 4, kStories, 60, 1, 0});
  for (Finish f : {Finish::StopToken, Finish::StopString, Finish::Length, Finish::ContextFull})
    EXPECT_GT(ends[f], 0) << name_of(f);
}

TEST(Scheduler, RandomRequestsWithTooFewPages) {
  for (unsigned seed : seeds({11, 12, 13})) {
    const Seen n = serve({serving_run(256, 8, 10, 64 * 7), seed});
    EXPECT_GT(n.numbers.preemptions, 0u);
  }
}

// A context that is larger than all of the cache: a text ends where that does.
TEST(Scheduler, RandomRequestsWithACacheBelowTheContext) {
  const Seen n = serve({serving_run(512, 6, 6, 64 * 4), 21});
  EXPECT_GT(n.numbers.preemptions, 0u);
  EXPECT_GT(n.ends.at(Finish::ContextFull), 0);
}

TEST(Scheduler, RandomRequestsWithoutAPlaceForPrefixes) { serve({serving_run(128, 4, 4), 31}); }

TEST(Scheduler, RandomRequestsOfRecurrentModels) {
  for (const std::string& model : recurrent_models()) {
    SCOPED_TRACE(model);
    const bool some = fewer_cases();
    serve({serving_run(384, 6, 9), 41, "more/arch/" + model, some ? 24 : 40, 2});
    serve({serving_run(256, 6, 6, 64 * 6), 42, "more/arch/" + model, 40});  // with fewer, none is shared
  }
}

// Windows lose their beginnings, and can then give nothing to another text.
TEST(Scheduler, RandomRequestsOfAModelWithWindows) {
  serve({serving_run(256, 6, 9), 51, "more/arch/gemma4-moe", 40});
}

// The same requests to servers that start one after the other, with a folder of pages between them: all over
// the cache, too little of it, windows, recurrent states, latent attention, drafts, a folder that is too
// small.
TEST(Scheduler, StoredPrefixesChangeNothing) {
  const Setting all[] = {{serving_run(256, 8, 12), 71},
                         {serving_run(256, 8, 10, 64 * 7), 72},
                         {serving_run(256, 6, 9), 73, "more/arch/gemma4-moe", 40},
                         {serving_run(384, 6, 9), 74, "more/arch/qwen35", 40, 2},
                         {serving_run(256, 6, 6, 64 * 6), 75, "more/arch/jamba", 40},
                         {serving_run(256, 6, 9), 76, "more/arch/deepseek2", 40},
                         {drafted(serving_run(256, 16, 12), 7), 77},
                         {drafted(serving_run(256, 16, 12), 7), 79, "more/arch/qwen35", 40},
                         {.run = serving_run(256, 8, 12), .seed = 78, .store_bytes = 500 * 4096}};
  for (Setting s : all) {
    if (fewer_cases() && s.seed % 3 != 71 % 3) continue;
    SCOPED_TRACE(s.model + " " + std::to_string(s.seed));
    s.store = temporary_path("served-prefixes");
    std::filesystem::remove_all(s.store);
    serve(s);
    const Seen again = serve(s);
    // A folder that is too small may have lost each page before it is asked for.
    if (s.store_bytes == Setting().store_bytes) { EXPECT_GT(again.stored, 64u); }
    std::printf("%d tokens read from the store\n", int(again.stored));
    if (HasFailure()) return;
  }
}

// Drafts are a matter of speed only.
TEST(Scheduler, DraftsChangeNothing) {
  for (unsigned seed : seeds({61, 62, 63})) {
    const Seen n = serve({drafted(serving_run(256, 16, 12), 1 + int(seed % 3) * 7), seed});
    EXPECT_GT(n.accepted, n.drafted / 10);
    EXPECT_LT(n.accepted, n.drafted);
    const Seen few = serve({drafted(serving_run(256, 8, 10, 64 * 7), 7), seed});
    EXPECT_GT(few.numbers.preemptions, 0u);
  }
  serve({drafted(serving_run(256, 8, 12), 15), 64, kStories, 60, 1, 16, Drafting::Length::Adapts});
}

TEST(Scheduler, DraftsChangeNothingOfRecurrentModels) {
  for (const std::string& model : recurrent_models()) {
    SCOPED_TRACE(model);
    const bool some = fewer_cases();
    serve({drafted(serving_run(384, 6, 9), 5), 71, "more/arch/" + model, some ? 24 : 40, 2});
    serve({drafted(serving_run(256, 6, 6, 64 * 6), 7), 72, "more/arch/" + model, 40});
  }
}

TEST(Scheduler, DraftsChangeNothingOfAModelWithWindows) {
  serve({drafted(serving_run(256, 12, 9), 15), 81, "more/arch/gemma4-moe", 40});
}

// A sampler with a history continues after a lost engine as if nothing had happened.
TEST(Scheduler, ResumesASamplerThatRemembers) {
  OnCpu on(kStories, serving_run(128, 4, 2));
  for (const int version : {0, 1, 2, 3}) {
    GenerationRequest r;
    r.prompt = {1, 403, 407}, r.max_tokens = 40;
    r.sampler.seed = 5, r.sampler.temperature = 1, r.sampler.mirostat = version % 3;
    if (version == 3) r.reasoning = {10, true, "<think>", "</think>", "</think>\n\n"};
    if (version == 0) r.sampler.adaptive_target = 0.4f;
    const auto hear = [&](const GenerationRequest& request) {
      Heard heard;
      Scheduler serving(on.shared(), on.on_device_lost(), SchedulerOptions{64, 1000});
      serving.add(std::make_unique<ScheduledRequest>(1, request, sink_of(heard, int(request.written.size())),
                                                     any_tokenizer(), 128, std::nullopt));
      for (int i = 0; i < 200 && !serving.idle(); i++) EXPECT_TRUE(serving.step());
      return heard;
    };
    const Heard whole = hear(r);
    ASSERT_GT(whole.tokens.size(), 20u);
    for (const size_t written : {1u, 7u, 20u}) {
      GenerationRequest rest = r;
      rest.written.assign(whole.tokens.begin(), whole.tokens.begin() + long(written));
      rest.memory = whole.memories[written - 1];
      const Heard heard = hear(rest);
      EXPECT_EQ(heard.tokens, std::vector<Token>(whole.tokens.begin() + long(written), whole.tokens.end()));
    }
  }
}

}  // namespace
}  // namespace gimbal::test
