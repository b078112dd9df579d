// Whose turn it is: equal shares for clients, prefixes shared and given up, places taken and given back.
#include "scheduler/desk.h"
#include "support/adapters.h"

namespace gimbal::test {
namespace {

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
  EXPECT_EQ(d.numbers().preemptions, 2u) << "no request is preempted and resumed";
  uint64_t prompts = 0;
  for (int i = 0; i < 12; i++) prompts += text(10 + i, 10 + i).size();
  for (int i = 40; i < 43; i++) prompts += text(12, i).size();
  EXPECT_EQ(d.numbers().prompt_tokens, prompts) << "a prompt that comes back is not counted again";
}

// A client that was away has not saved up: it begins with the least that others had.
TEST(Admission, AClientThatComesLaterHasSavedNothingUp) {
  FairQueue q;
  uint64_t id = 0;
  Heard heard;
  const auto ask = [&](const std::string& client) {
    GenerationRequest r;
    r.prompt = {1, 2}, r.max_tokens = 1, r.client = client;
    auto g =
        std::make_unique<ScheduledRequest>(++id, std::move(r), sink_of(heard, 0, {}), any_tokenizer(), 64);
    ScheduledRequest* raw = g.get();
    q.add(std::move(g));
    return raw;
  };
  ScheduledRequest *a = ask("a"), *b = ask("b");
  EXPECT_EQ(a->client->served, 0u);
  a->client->served = 1000, b->client->served = 700;
  EXPECT_EQ(ask("c")->client->served, 700u);
  EXPECT_EQ(ask("a")->client->served, 1000u) << "it is there already";

  // And so its prompts take no more than its share of the rows.
  Desk d(serving_run(512, 4, 6));
  const size_t first = d.ask(text(5, 1), 400, "a"), second = d.ask(text(5, 2), 400, "b");
  for (int i = 0; i < 100; i++) d.step();
  for (int i = 0; i < 6; i++) d.ask(text(300, 10 + i), 1, "c");
  const size_t before = d.told(first) + d.told(second);
  for (int i = 0; i < 20; i++) d.step();
  EXPECT_EQ(d.told(first) + d.told(second) - before, 40u) << "a token for each in every step";
}

// A text is admitted where each that runs can get its next page, too: otherwise one of them would have to
// leave.
TEST(Admission, WhoRunsHasRoomForItsNextPage) {
  constexpr int kPages = 9;
  Desk d(serving_run(512, 4, 6, 64 * kPages));
  std::vector<size_t> running;
  for (int i = 0; i < 3; i++) running.push_back(d.ask(text(100, i), 60));  // two pages each, soon three
  while (d.told(running[2]) == 0) d.step();
  const size_t late = d.ask(text(30, 9), 30);  // a page for longer than the others have two
  d.finish();
  EXPECT_EQ(d.numbers().preemptions, 0u);
  EXPECT_EQ(d.told(late), 30u);
  for (size_t id : running) EXPECT_EQ(d.told(id), 60u);
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
  EXPECT_EQ(d.numbers().pages_shared, 0) << "no request runs";
  EXPECT_EQ(d.numbers().rows, 201u + 3 + 4 * 2);
  EXPECT_EQ(d.heard(ids[0]).end->shared_tokens, 0);
  for (size_t i = 1; i < 4; i++) EXPECT_EQ(d.heard(ids[i]).end->shared_tokens, 200);
  // And later, with the answer: a conversation continues.
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

// A beginning that others branch off from, half way, was used: it is not the oldest.
TEST(Admission, ABeginningThatIsSharedWasUsed) {
  Desk d(serving_run(256, 2, 8, 64 * 8));
  const auto older = text(130, 1), newer = text(130, 2);
  d.ask(older, 1), d.finish();
  d.ask(newer, 1), d.finish();
  std::vector<Token> branch(older.begin(), older.begin() + 100);
  branch.push_back(3);
  const size_t a = d.ask(branch, 1);
  d.finish();
  EXPECT_EQ(d.heard(a).end->shared_tokens, 100);
  d.ask(text(250, 7), 1), d.finish();  // four pages: something has to go
  const size_t b = d.ask(older, 1), c = d.ask(newer, 1);
  d.finish();
  EXPECT_GT(d.heard(b).end->shared_tokens, d.heard(c).end->shared_tokens);
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
  EXPECT_FALSE(ScheduledRequest::check(a, 512, 0, 256)) << "a model of tokens";
  EXPECT_TRUE(ScheduledRequest::check(a, 512, width, 256));
}

// The same prompt under other adapters is another text: computed beside each other or one after the other,
// each request hears what it hears alone, and only texts with the same scales share their beginning.
TEST(Admission, OtherAdaptersShareNothing) {
  const std::string model = "stories/stories260K-f32";
  const std::string path = golden_dir() + "/" + model + ".gguf";
  const std::vector<Lora> lora = {{make_adapter(path).adapter, kAdapterScale},
                                  {make_adapter(path, 8).adapter, 0}};
  OnCpu reference(model, serving_run(256, 64, 1, 0, 64), 1, lora);
  const std::vector<std::vector<float>> scales = {{}, {0, 0}, {0, 1.5f}, {0.25f, 0.5f}};
  std::vector<GenerationRequest> asked;
  std::vector<Heard> want;
  for (const auto& s : scales) {
    GenerationRequest& r = asked.emplace_back();
    r.prompt = text(130, 1), r.max_tokens = 12, r.ignore_stop_tokens = true, r.sampler.greedy = true;
    r.adapters = s;
    want.push_back(alone(reference.model(), any_tokenizer(), r));
    for (size_t i = 0; i + 1 < want.size(); i++) EXPECT_NE(want[i].tokens, want.back().tokens);
  }
  for (const bool at_once : {false, true}) {
    Desk d(serving_run(256, 8, 10), 16, model, lora);
    std::vector<size_t> ids;
    for (int round = 0; round < 2; round++)
      for (const GenerationRequest& r : asked) {
        ids.push_back(d.ask(r));
        if (!at_once) d.finish();
      }
    d.finish();
    for (size_t i = 0; i < ids.size(); i++) {
      const size_t which = i % asked.size();
      expect_same(d.heard(ids[i]), want[which], asked[which]);
      EXPECT_EQ(d.heard(ids[i]).end->shared_tokens, i < asked.size() ? 0 : 129) << i;
    }
  }
  EXPECT_TRUE(ScheduledRequest::check(asked[3], 512, 0, 256, 2));
  for (size_t adapters : {0, 1, 3}) {
    auto no = ScheduledRequest::check(asked[3], 512, 0, 256, adapters);
    ASSERT_FALSE(no);
    EXPECT_EQ(no.error().code, Code::Usage);
    EXPECT_EQ(no.error().field, std::string("adapters"));
  }
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

TEST(ScheduledRequest, WhatIsWrongIsSaidBeforeItWaits) {
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
    ASSERT_TRUE(ScheduledRequest::check(r, 512, 0, 64));
    c.change(r);
    auto no = ScheduledRequest::check(r, 512, 0, 64);
    ASSERT_FALSE(no) << c.says;
    EXPECT_EQ(no.error().code, Code::Usage);
    EXPECT_NE(no.error().message.find(c.says), std::string::npos) << no.error().message;
    EXPECT_STREQ(no.error().field, c.field);
    EXPECT_STREQ(no.error().reason, c.reason);
  }
}

// For files that outlive the server: the state of a prefix as bytes, and back.
TEST(Admission, APrefixIsGivenOutAndTakenIn) {
  Desk d(serving_run(512, 4, 4, 256));  // four pages
  Scheduler& serving = d.serving();
  Model& model = serving.own_model();
  const std::vector<Token> prompt = text(100, 1);
  const size_t first = d.ask(prompt, 5);
  d.finish();

  std::vector<Token> tokens;
  std::vector<uint32_t> first_pages;
  std::vector<std::string> pages;
  const auto give_out = [&](const Sequence& s) -> Status {
    tokens.assign(s.tokens().begin(), s.tokens().end());
    for (size_t p = 0; p < model.plan().pools.size(); p++) first_pages.push_back(uint32_t(s.first_page(p)));
    return model.save(s, [&](std::span<std::byte> page) -> Status {
      pages.emplace_back(reinterpret_cast<const char*>(page.data()), page.size());
      return Done{};
    });
  };
  EXPECT_EQ(*serving.use_prefix(text(30, 7), give_out), 0);
  ASSERT_EQ(*serving.use_prefix(prompt, give_out), 100);
  EXPECT_EQ(tokens, prompt) << "not the answer behind it";
  EXPECT_GE(serving.drop_prefix(prompt), 100);
  EXPECT_EQ(serving.drop_prefix(prompt), 0);

  for (int i = 2; i < 6; i++) d.ask(text(100, i), 5), d.finish();  // they fill the cache, and are given up
  size_t next = 0;
  ASSERT_TRUE(serving.add_prefix([&](Sequence& s) {
    return model.restore(s, tokens, first_pages, [&](std::span<std::byte> page) -> Status {
      std::memcpy(page.data(), pages[next++].data(), page.size());
      return Done{};
    });
  }));
  EXPECT_EQ(next, pages.size());
  const size_t again = d.ask(prompt, 5);
  d.finish();
  EXPECT_EQ(d.heard(again).tokens, d.heard(first).tokens);
  EXPECT_GE(d.heard(again).end->shared_tokens, 99);

  const Status failed = serving.add_prefix([](Sequence&) -> Status {
    return Error{Code::Failed, "a loose cable", ""};
  });
  EXPECT_FALSE(failed);
}

}  // namespace
}  // namespace gimbal::test
