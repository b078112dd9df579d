// Whose turn it is: equal shares for clients, prefixes shared and given up, places taken and given back.
#include "scheduler/served.h"

namespace gimbal::test {
namespace {

// Requests of one model by hand, a step at a time.
class Desk {
 public:
  explicit Desk(const RunOptions& run, int prompt_rows = 16, const std::string& model = kStories)
      : on_cpu_(model, run), serving_(on_cpu_.shared(), on_cpu_.on_device_lost(), {prompt_rows, 100}) {}

  // A text of random tokens, answered for as long as `tokens` says.
  size_t ask(std::vector<Token> prompt, int tokens, const std::string& client = "") {
    GenerationRequest r;
    r.prompt = std::move(prompt), r.max_tokens = tokens, r.ignore_stop_tokens = true, r.client = client;
    r.sampler.greedy = true;
    return ask(std::move(r));
  }
  size_t ask(GenerationRequest r) {
    heard_.push_back(std::make_unique<Heard>());
    const size_t id = heard_.size();
    serving_.add(std::make_unique<Generation>(id, std::move(r), sink_of(*heard_.back(), 0, on_token_),
                                              any_tokenizer(), Serving::capacity(on_cpu_.model().plan())));
    return id;
  }
  void step() {
    auto ok = serving_.step();
    ASSERT_TRUE(ok) << ok.error().message;
  }
  void finish() {
    for (int i = 0; i < 10000 && !serving_.idle(); i++) step();
    EXPECT_TRUE(serving_.idle());
  }
  const Heard& heard(size_t id) const { return *heard_[id - 1]; }
  size_t told(size_t id) const { return heard(id).tokens.size(); }
  const SchedulerNumbers& numbers() const { return serving_.numbers(); }
  Serving& serving() { return serving_; }

 private:
  OnCpu on_cpu_;
  std::vector<std::unique_ptr<Heard>> heard_;
  std::function<void()> on_token_;
  Serving serving_;
};

std::vector<Token> text(int n, int from) {
  std::vector<Token> t;
  for (int i = 0; i < n; i++) t.push_back(Token((i * 37 + from * 101 + i * i % 7) % 500));
  return t;
}

// The first such step, before its time tells how many rows suit this machine.
TEST(Admission, AStepOfStreamsAndPromptsIsFilledUp) {
  for (const int streams : {1, 3}) {
    Desk d(serving_run(512, 4, 6, 0, 256), 0);
    for (int i = 0; i < streams; i++) d.ask(text(5, i), 100);
    d.step();
    const uint64_t before = d.numbers().rows;
    d.ask(text(400, 9), 10);
    d.step();
    EXPECT_EQ(d.numbers().rows - before, 64u) << streams;
  }
}

TEST(Admission, ALongPromptDoesNotStopStreams) {
  Desk d(serving_run(512, 4, 6));
  const size_t a = d.ask(text(5, 1), 100), b = d.ask(text(7, 2), 100);
  d.step();
  EXPECT_EQ(d.told(a), 1u);
  const size_t lng = d.ask(text(400, 3), 10);
  for (size_t i = 2; d.told(lng) == 0; i++) {
    d.step();
    ASSERT_EQ(d.told(a), i);
    ASSERT_EQ(d.told(b), i);
    ASSERT_LE(i, 30u);
  }
  EXPECT_GE(d.told(a), 400u / 16) << "the prompt came in pieces";
  d.finish();
}

TEST(Admission, AShortPromptDoesNotWaitBehindALongOneOfAnotherClient) {
  Desk d(serving_run(512, 4, 6));
  const size_t stream = d.ask(text(4, 9), 200, "c");
  d.step();
  const size_t lng = d.ask(text(400, 3), 10, "a");
  for (int i = 0; i < 3; i++) d.step();
  const size_t brief = d.ask(text(20, 4), 10, "b");
  for (int i = 0; i < 4; i++) d.step();
  EXPECT_GT(d.told(brief), 0u);
  EXPECT_EQ(d.told(lng), 0u);
  EXPECT_GT(d.told(stream), 5u);
  d.finish();
}

TEST(Admission, ClientsGetEqualSharesOfThePlaces) {
  Desk d(serving_run(256, 4, 8));
  std::vector<size_t> many;
  for (int i = 0; i < 12; i++) many.push_back(d.ask(text(10 + i, 10 + i), 60, "many"));
  for (int i = 0; i < 5; i++) d.step();
  EXPECT_EQ(d.numbers().running, 4);
  const size_t x = d.ask(text(12, 40), 60, "few"), y = d.ask(text(12, 41), 60, "few");
  const size_t z = d.ask(text(12, 42), 60, "few");
  auto sum = [&] {
    size_t n = 0;
    for (size_t id : many) n += d.told(id);
    return n;
  };
  const size_t before = sum();
  d.step(), d.step();
  EXPECT_EQ(d.numbers().preemptions, 2u) << "half of the places";
  EXPECT_GT(d.told(x), 0u);
  EXPECT_GT(d.told(y), 0u);
  EXPECT_EQ(d.told(z), 0u);
  EXPECT_EQ(d.numbers().running, 4);
  // As much is computed for the one as for the other while both want something.
  while (!d.heard(z).over()) d.step();
  const size_t of_many = sum() - before, of_few = d.told(x) + d.told(y) + d.told(z);
  EXPECT_GT(of_many, of_few * 3 / 4);
  EXPECT_LT(of_many, of_few * 2) << "of the last third, few wants one place only";
  d.finish();
  for (size_t id : many) EXPECT_EQ(d.told(id), 60u);
  EXPECT_EQ(d.numbers().preemptions, 2u) << "nobody is sent away and back";
}

TEST(Admission, WithinAClientWhoCameFirstIsFirst) {
  Desk d(serving_run(256, 1, 4));
  std::vector<size_t> ids;
  for (int i = 0; i < 5; i++) ids.push_back(d.ask(text(9, i), 5));
  for (size_t i = 0; i < ids.size(); i++) {
    while (!d.heard(ids[i]).over()) d.step();
    for (size_t k = i + 1; k < ids.size(); k++) EXPECT_EQ(d.told(ids[k]), 0u);
  }
}

TEST(Admission, APrefixIsComputedOnce) {
  Desk d(serving_run(512, 4, 8));
  const auto common = text(200, 5);
  std::vector<size_t> ids;
  for (int i = 0; i < 4; i++) {  // at once: three wait for the first
    auto t = common;
    t.push_back(Token(i));
    ids.push_back(d.ask(t, 3));
  }
  int shared = 0;
  while (!d.serving().idle()) d.step(), shared = std::max(shared, d.numbers().pages_shared);
  EXPECT_EQ(shared, 3) << "whole pages of 64, of 200 tokens";
  EXPECT_EQ(d.numbers().pages_shared, 0) << "nobody runs";
  EXPECT_EQ(d.numbers().rows, 201u + 3 + 4 * 2);
  EXPECT_EQ(d.heard(ids[0]).end->shared_tokens, 0);
  for (size_t i = 1; i < 4; i++) EXPECT_EQ(d.heard(ids[i]).end->shared_tokens, 200);
  // And later, with what was answered: a conversation goes on.
  auto next = common;
  next.push_back(0);
  next.insert(next.end(), d.heard(ids[0]).tokens.begin(), d.heard(ids[0]).tokens.end());
  next.push_back(17);
  const size_t more = d.ask(next, 3);
  d.finish();
  EXPECT_EQ(d.heard(more).end->shared_tokens, 203) << "the last token of an answer is not computed";
  EXPECT_EQ(d.numbers().prompt_tokens, 4 * 201u + 205);
  EXPECT_EQ(d.numbers().shared_tokens, 3 * 200u + 203);
}

TEST(Admission, RecurrentModelsShareWhatTheyHaveCheckpointsOf) {
  Desk d(serving_run(512, 4, 8), 16, "more/arch/mamba2");
  const auto common = text(200, 5);
  const size_t a = d.ask(common, 3);
  d.finish();
  EXPECT_EQ(d.heard(a).end->shared_tokens, 0);
  const size_t b = d.ask(common, 3);
  d.finish();
  EXPECT_EQ(d.heard(b).end->shared_tokens, 192) << "the last whole page of a prompt";
  auto next = common;
  next.insert(next.end(), d.heard(a).tokens.begin(), d.heard(a).tokens.end());
  next.push_back(4);
  const size_t c = d.ask(next, 3);
  d.finish();
  EXPECT_EQ(d.heard(c).end->shared_tokens, 202) << "the state behind what was computed";
}

TEST(Admission, WhatWasUsedLongestAgoGivesItsMemory) {
  Desk d(serving_run(256, 2, 8, 64 * 8));
  const auto first = text(130, 1), second = text(130, 2);
  d.ask(first, 1), d.finish();
  d.ask(second, 1), d.finish();
  EXPECT_EQ(d.numbers().pages_kept, 6);
  EXPECT_EQ(d.heard(d.ask(first, 1)).tokens.size(), 0u), d.finish();  // used again
  d.ask(text(190, 3), 1), d.finish();                                 // three pages, and two are free
  const size_t b = d.ask(second, 1);
  d.finish();
  EXPECT_EQ(d.heard(b).end->shared_tokens, 128) << "of the older one, the last page went";
}

TEST(Admission, ACancelledRequestLeavesAtOnce) {
  Desk d(serving_run(256, 2, 4));
  const size_t a = d.ask(text(10, 1), 100), b = d.ask(text(10, 2), 100), c = d.ask(text(10, 3), 100);
  d.step();
  EXPECT_EQ(d.numbers().waiting, 1);
  d.serving().cancel(a), d.serving().cancel(c), d.serving().cancel(77);
  d.step();
  EXPECT_EQ(d.numbers().running, 1);
  EXPECT_EQ(d.numbers().waiting, 0);
  EXPECT_EQ(d.told(a), 1u);
  EXPECT_EQ(d.told(c), 0u);
  EXPECT_EQ(d.heard(a).end->finish, Finish::Cancelled);
  EXPECT_EQ(d.heard(a).end->tokens, 1);
  EXPECT_EQ(d.heard(c).end->finish, Finish::Cancelled);
  d.serving().cancel(a);
  d.finish();
  EXPECT_EQ(d.told(b), 100u);
}

// Two pictures at the same places are two texts: one request never gets what was computed for the other,
// whether it is kept or still runs, and each hears what it hears alone.
TEST(Admission, OtherEmbeddingsShareNothing) {
  RunOptions run = serving_run(256, 4, 6);
  run.embeddings = true;
  OnCpu reference(kStories, [] {
    RunOptions alone = serving_run(256, 64, 1, 0, 64);
    alone.embeddings = true;
    return alone;
  }());
  const int width = reference.model().config().width;
  auto picture = [&](float value) {
    std::vector<float> values(size_t(width) * 40);
    for (size_t i = 0; i < values.size(); i++) values[i] = value * float(int(i % 23) - 11);
    GenerationRequest r;
    r.prompt = text(130, 1), r.max_tokens = 12, r.ignore_stop_tokens = true, r.sampler.greedy = true;
    std::fill_n(r.prompt.begin() + 70, 40, kNoToken);
    r.embeddings = {{70, *Embeddings::create(std::move(values), width), 0, 40}};
    return r;
  };
  const GenerationRequest a = picture(0.01f), b = picture(-0.03f);
  const Heard of_a = alone(reference.model(), any_tokenizer(), a),
              of_b = alone(reference.model(), any_tokenizer(), b);
  EXPECT_NE(of_a.tokens, of_b.tokens) << "pictures that say nothing";
  for (const bool at_once : {false, true}) {
    Desk d(run);
    std::vector<size_t> ids;
    for (const GenerationRequest* r : {&a, &b, &a, &b}) {
      ids.push_back(d.ask(*r));
      if (!at_once) d.finish();
    }
    d.finish();
    for (size_t i = 0; i < ids.size(); i++) expect_same(d.heard(ids[i]), i % 2 ? of_b : of_a, i % 2 ? b : a);
    if (at_once) continue;
    EXPECT_EQ(d.heard(ids[1]).end->shared_tokens, 70) << "up to the picture";
    EXPECT_EQ(d.heard(ids[2]).end->shared_tokens, 129) << "the same picture again";
    EXPECT_EQ(d.heard(ids[3]).end->shared_tokens, 129);
  }
  EXPECT_FALSE(Generation::check(a, 512, 0, 256)) << "a model of tokens";
  EXPECT_TRUE(Generation::check(a, 512, width, 256));
}

// A prompt is computed in pieces, and a request can be cancelled between two of them.
TEST(Admission, ACancelWithinAPromptEndsIt) {
  Desk d(serving_run(256, 2, 4));
  const size_t a = d.ask(text(200, 1), 10);
  d.step();
  EXPECT_EQ(d.numbers().rows, 48u) << "a part of it";
  d.serving().cancel(a);
  ASSERT_TRUE(d.heard(a).end);
  EXPECT_EQ(d.heard(a).end->finish, Finish::Cancelled);
  EXPECT_TRUE(d.serving().idle());
  EXPECT_EQ(d.numbers().rows, 48u) << "and no more";
}

TEST(Admission, NothingAskedForIsNothingComputed) {
  Desk d(serving_run(256, 2, 4));
  const size_t a = d.ask(text(10, 1), 0);
  EXPECT_TRUE(d.heard(a).end);
  EXPECT_STREQ(name_of(d.heard(a).end->finish), "length");
  EXPECT_TRUE(d.serving().idle());
  EXPECT_EQ(d.numbers().steps, 0u);
}

// Damaged weights end the request that met them, and no other.
TEST(Admission, AnImpossibleChoiceEndsOneRequest) {
  Desk d(serving_run(256, 2, 4));
  GenerationRequest r;
  r.prompt = text(10, 1);
  for (int t = 0; t < 512; t++) r.sampler.logit_bias.push_back({t, -INFINITY});
  const size_t a = d.ask(r), b = d.ask(text(10, 2), 10);
  d.finish();
  ASSERT_TRUE(d.heard(a).failed);
  EXPECT_NE(d.heard(a).failed->message.find("forbids every token"), std::string::npos);
  EXPECT_EQ(d.told(b), 10u);
}

TEST(Generation, WhatIsWrongIsSaidBeforeItWaits) {
  struct Case {
    std::function<void(GenerationRequest&)> change;
    const char *says, *field, *reason;
  };
  for (const Case& c : {
           Case{[](auto& r) { r.prompt.clear(); }, "empty prompt", "", ""},
           {[](auto& r) { r.prompt.resize(65); }, "65 tokens, but the context has room for 64", "context",
            "context-full"},
           {[](auto& r) { r.prompt[0] = 512; }, "token 512 is not in the model's vocabulary", "", ""},
           {[](auto& r) { r.written = {-1}; }, "token -1 is not in the model's vocabulary", "", ""},
           {[](auto& r) { r.sampler.temperature = -1; }, "'temperature' is -1", "temperature",
            "out-of-range"},
           {[](auto& r) {
              r.sampler.logit_bias = {{512, 1}};
            },
            "names token id 512", "logit_bias", "out-of-range"},
           {[](auto& r) { r.stops = {""}; }, "'stops' is empty", "stops", ""},
           {[](auto& r) { r.logprobs = 513; }, "asks for 513 tokens", "logprobs", "out-of-range"},
       }) {
    GenerationRequest r;
    r.prompt = {1, 2, 3};
    ASSERT_TRUE(Generation::check(r, 512, 0, 64));
    c.change(r);
    auto no = Generation::check(r, 512, 0, 64);
    ASSERT_FALSE(no) << c.says;
    EXPECT_EQ(no.error().code, Code::Usage);
    EXPECT_NE(no.error().message.find(c.says), std::string::npos) << no.error().message;
    EXPECT_STREQ(no.error().field, c.field);
    EXPECT_STREQ(no.error().reason, c.reason);
  }
}

}  // namespace
}  // namespace gimbal::test
