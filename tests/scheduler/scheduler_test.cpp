// The scheduler's thread: many threads ask at once, the queue is bounded, and lost requests continue.
#include "scheduler/scheduler_thread.h"

#include <future>

#include "scheduler/served.h"
#include "support/fake_plugins.h"
#include "support/grammars.h"

namespace gimbal::test {
namespace {

// What a sink heard, for another thread.
class Listener {
 public:
  GenerationSink sink(std::function<void()> heard = {}) {
    GenerationSink s = sink_of(heard_, 0, std::move(heard));
    auto end = [this](auto last) {
      return [this, last = std::move(last)](const auto& said) {
        last(said);
        over_.set_value();
      };
    };
    s.end = end(std::move(s.end)), s.failed = end(std::move(s.failed));
    return s;
  }
  const Heard& wait() {
    over_.get_future().wait();
    return heard_;
  }

 private:
  Heard heard_;
  std::promise<void> over_;
};

GenerationRequest greedy(std::vector<Token> prompt, int tokens) {
  GenerationRequest r;
  r.prompt = std::move(prompt), r.max_tokens = tokens, r.ignore_stop_tokens = true;
  r.sampler.greedy = true;
  return r;
}

std::unique_ptr<SchedulerThread> scheduler_on(OnCpu& on, const SchedulerOptions& options = {}) {
  return *SchedulerThread::create(on.shared(), tokenizer_of(on.on()), on.on_device_lost(), options);
}

std::vector<Token> once() { return any_tokenizer().encode("Once upon a time"); }

// A scheduler that many threads ask, and what each request gets alone.
class BesideOthers {
 public:
  SchedulerThread& scheduler() { return *scheduler_; }
  // `thread`: called with its number by each of so many threads.
  void ask_from(int threads, const std::function<void(int)>& thread) {
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) all.emplace_back(thread, t);
    for (std::thread& t : all) t.join();
  }
  void hears_what_it_hears_alone(const GenerationRequest& r, bool cancelled) {
    Listener l;
    const uint64_t id = new_request_id();
    const Status queued = scheduler_->submit(id, r, l.sink());
    ASSERT_TRUE(queued) << queued.error().message;
    if (cancelled) scheduler_->cancel(id);
    const Heard& heard = l.wait();
    const std::lock_guard lock(one_at_a_time_);
    expect_same(heard, alone(reference_.model(), scheduler_->tokenizer(), r), r);
  }

 private:
  OnCpu many_{"default", serving_run(256, 8, 12, 0, 64)},
      reference_{"default", serving_run(256, 64, 1, 0, 64)};
  std::mutex one_at_a_time_;  // the reference
  std::unique_ptr<SchedulerThread> scheduler_ = scheduler_on(many_);
};

TEST(SchedulerThread, ManyThreadsHearWhatTheyHearAlone) {
  BesideOthers b;
  b.ask_from(6, [&](int t) {
    Requests requests(100 + unsigned(t), b.scheduler().tokenizer().size(), b.scheduler().capacity());
    requests.grammars = true;
    for (int i = 0; i < 6; i++) {
      const GenerationRequest r = requests.next();
      b.hears_what_it_hears_alone(r, requests.any(6) == 0);
    }
  });
}

TEST(SchedulerThread, AFullQueueSaysSo) {
  OnCpu on("default", serving_run(256, 2, 3, 0, 64));
  auto s = scheduler_on(on, {64, 3});
  std::vector<std::unique_ptr<Listener>> listeners;
  std::promise<void> gate;  // the engine waits at its first token until all have asked
  const std::shared_future<void> open = gate.get_future();
  auto ask = [&] {
    listeners.push_back(std::make_unique<Listener>());
    return s->submit(new_request_id(), greedy(once(), -1), listeners.back()->sink([open] { open.wait(); }));
  };
  for (int i = 0; i < 5; i++) ASSERT_TRUE(ask());
  auto no = s->submit(new_request_id(), greedy(once(), 5), {});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
  EXPECT_STREQ(no.error().reason, "queue-full");
  gate.set_value();
  for (auto& l : listeners) {
    const Heard& h = l->wait();
    EXPECT_EQ(h.end->finish, Finish::ContextFull);
    EXPECT_EQ(h.tokens.size(), 256 - once().size() + 1);
  }
}

TEST(SchedulerThread, AGrammarConstrainsTheAnswer) {
  OnCpu on("default", serving_run(256, 2, 3, 0, 64));
  auto s = scheduler_on(on);
  GenerationRequest r = greedy(once(), -1);
  r.ignore_stop_tokens = false;
  for (const char* form :
       {"root ::= \"yes\" | \"no\"", "root ::= [a-c]{3} \"!\"", "root ::= \"yes\" | \"no\""}) {
    Listener l;
    r.grammar = form;
    ASSERT_TRUE(s->submit(new_request_id(), r, l.sink()));
    const Heard& h = l.wait();
    ASSERT_TRUE(h.end);
    EXPECT_STREQ(name_of(h.end->finish), "stop-token");
    const std::string text = h.text();
    if (r.grammar.find("yes") != std::string::npos) EXPECT_TRUE(text == "yes" || text == "no") << text;
    else EXPECT_TRUE(text.size() == 4 && text.find_first_not_of("abc") == 3 && text[3] == '!') << text;
  }
  r.grammar = "root ::= (";
  Listener no;
  ASSERT_TRUE(s->submit(new_request_id(), r, no.sink()));
  const Heard& heard = no.wait();
  ASSERT_TRUE(heard.failed);
  EXPECT_EQ(heard.failed->code, Code::Usage);
}

// Two places and three in the queue: more requests than that are refused, one after the other.
TEST(SchedulerThread, ARefusedGrammarTakesNoPlaceOfTheQueue) {
  OnCpu on("default", serving_run(256, 2, 3, 0, 64));
  auto s = scheduler_on(on, {64, 3});
  GenerationRequest r = greedy(once(), 5);
  for (int i = 0; i < 8; i++) {
    r.grammar = "root ::= (";
    Listener no;
    const Status queued = s->submit(new_request_id(), r, no.sink());
    ASSERT_TRUE(queued) << i << ": " << queued.error().message;
    ASSERT_TRUE(no.wait().failed);
  }
  r.grammar.clear();
  Listener l;
  ASSERT_TRUE(s->submit(new_request_id(), r, l.sink()));
  EXPECT_EQ(l.wait().tokens.size(), 5u);
}

// Their masks are found by another thread; everybody gets what it gets alone.
TEST(SchedulerThread, HostileGrammarsAmongOthers) {
  BesideOthers b;
  b.ask_from(8, [&](int t) {
    GenerationRequest r = greedy(once(), 60);
    r.sampler.greedy = false, r.sampler.seed = uint64_t(t);
    if (t % 2) r.grammar = overlapping_grammar((fewer_cases() ? 15 : 30) + t), r.ignore_stop_tokens = false;
    for (int i = 0; i < 3; i++) b.hears_what_it_hears_alone(r, t == 7 && i == 1);
  });
}

TEST(SchedulerThread, ASinkMayCancel) {
  OnCpu on("default", serving_run(256, 2, 3, 0, 64));
  auto s = scheduler_on(on);
  Listener l;
  const uint64_t id = new_request_id();
  int heard = 0;
  ASSERT_TRUE(s->submit(id, greedy(once(), -1), l.sink([&] {
    if (++heard == 3) s->cancel(id);
  })));
  const Heard& h = l.wait();
  EXPECT_EQ(h.end->finish, Finish::Cancelled);
  EXPECT_EQ(h.tokens.size(), 3u);
}

TEST(SchedulerThread, WhatRunsWhenItEndsIsCancelled) {
  OnCpu on("default", serving_run(256, 1, 3, 0, 64));
  auto s = scheduler_on(on);
  Listener a, b;
  std::promise<void> began;
  bool first = true;
  ASSERT_TRUE(s->submit(new_request_id(), greedy(once(), -1), a.sink([&] {
    if (std::exchange(first, false)) began.set_value();
  })));
  ASSERT_TRUE(s->submit(new_request_id(), greedy(once(), -1), b.sink()));
  began.get_future().wait();
  s = nullptr;
  EXPECT_TRUE(a.wait().end && b.wait().end);
}

TEST(SchedulerThread, NumbersForMetrics) {
  OnCpu on("default", serving_run(256, 4, 6, 0, 64));
  auto s = scheduler_on(on);
  EXPECT_EQ(s->numbers().pages_running, 0);
  EXPECT_GT(s->numbers().pages, 0);
  for (int i = 0; i < 3; i++) {
    Listener l;
    ASSERT_TRUE(s->submit(new_request_id(), greedy(once(), 20), l.sink()));
    l.wait();
  }
  while (s->numbers().requests < 3) std::this_thread::yield();
  const SchedulerNumbers n = s->numbers();
  EXPECT_EQ(n.running + n.waiting, 0);
  EXPECT_EQ(n.tokens_generated, 60u);
  EXPECT_EQ(n.prompt_tokens, 3 * once().size());
  uint64_t first = 0, between = 0;
  for (uint64_t c : n.first_token.counts) first += c;
  for (uint64_t c : n.between_tokens.counts) between += c;
  EXPECT_EQ(first, 3u);
  EXPECT_EQ(between, 57u);
  EXPECT_GT(n.first_token.sum, 0);
}

// A card that gets lost in the middle of several texts.
class LostDevice : public testing::Test {
 protected:
  gimbal::Engine& engine(const std::string& told, bool strict = false) {
    folder_.put("metal", "hardware," + told);
    BackendPlaces places;
    places.folders = {folder_.path()};
    registry_ = std::make_unique<Registry>(places);
    gimbal::EngineOptions o;
    o.backend = "metal", o.threads = 1, o.verify = Verify::Never, o.run = serving_run(256, 4, 6, 0, 32);
    o.run.kernels.allow_fast = true, o.strict = strict;
    engine_ = std::make_unique<gimbal::Engine>(*registry_, o);
    return *engine_;
  }
  PluginFolder folder_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<gimbal::Engine> engine_;
};

TEST_F(LostDevice, NoTokenIsLostOrToldTwice) {
  OnCpu reference("default", serving_run(256, 64, 1, 0, 64));
  for (int at : {2, 5, 9}) {
    SCOPED_TRACE(at);
    gimbal::Engine& e = engine("lost-at=" + std::to_string(at));
    auto loaded = e.load(*open_model_file("default"));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ((*loaded)->opened.device->id(), "metal:0");
    Scheduler serving(model_of(*loaded), e.on_device_lost(*loaded), {});
    std::vector<GenerationRequest> requests;
    std::vector<std::unique_ptr<Heard>> heard;
    for (int i = 0; i < 6; i++) {
      auto prompt = once();
      prompt.push_back(Token(400 + i));
      requests.push_back(greedy(prompt, 12));
      heard.push_back(std::make_unique<Heard>());
      serving.add(std::make_unique<ScheduledRequest>(uint64_t(i + 1), requests.back(), sink_of(*heard.back()),
                                                     any_tokenizer(), 256));
    }
    while (!serving.idle()) {
      auto ok = serving.step();
      ASSERT_TRUE(ok) << ok.error().message;
    }
    EXPECT_EQ((*loaded)->opened.device->id(), "cpu:0");
    EXPECT_EQ(&serving.model(), (*loaded)->model.get());
    EXPECT_EQ(serving.numbers().devices_lost, 1u);
    for (size_t i = 0; i < requests.size(); i++)
      expect_same(*heard[i], alone(reference.model(), any_tokenizer(), requests[i]), requests[i]);
  }
}

TEST_F(LostDevice, UnderStrictAllEndsWithTheReason) {
  gimbal::Engine& e = engine("lost-at=3", true);
  auto loaded = e.load(*open_model_file("default"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  auto s = *SchedulerThread::create(model_of(*loaded), tokenizer_of(*loaded), e.on_device_lost(*loaded));
  std::vector<std::unique_ptr<Listener>> listeners;
  for (int i = 0; i < 6; i++) {
    listeners.push_back(std::make_unique<Listener>());
    const Status queued = s->submit(new_request_id(), greedy(once(), 12), listeners.back()->sink());
    if (!queued) {
      EXPECT_STREQ(queued.error().reason, "device-lost");
      listeners.pop_back();
    }
  }
  for (auto& l : listeners) {
    const Heard& h = l->wait();
    ASSERT_TRUE(h.failed);
    EXPECT_STREQ(h.failed->reason, "device-lost");
  }
}

}  // namespace
}  // namespace gimbal::test
