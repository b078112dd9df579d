// The front's side of a worker process: whatever the worker does, each answer is whole, each token told once.
// The worker here is this test's own program with a scripted engine, whose answers depend on the prompt
// alone, and which misbehaves as its mode says; serve_test.sh has the real one.
#include "workers/remote_service.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/send_signal.h"
#include "base/text.h"
#include "workers/scripted_front.h"

namespace gimbal::test {
namespace {

TEST(RemoteService, TellsWhatTheWorkerComputes) {
  Front front("well", 1 << 30, [](WorkerSettings& s) { s.ping_every = s.silence = std::chrono::hours(2); });
  ASSERT_TRUE(front.service->wait_ready());
  for (size_t n = 0; n < 16; n++) front.ask(n, 20 + int(n));
  for (size_t n = 0; n < 16; n++) expect_whole(front.wait(n), n, 20 + int(n));
  EXPECT_TRUE(front.replaced().empty());
  EXPECT_EQ(front.service->facts().hello->devices.at(0).device, "cpu:0");
  // The only ping in this test: without an answer it would not end.
  while (front.service->facts().numbers.steps <= 30) {
    front.service->ask_numbers();
    std::this_thread::yield();
  }
}

TEST(RemoteService, WhatItCountedNeverBecomesLess) {
  Front front("well");
  ASSERT_TRUE(front.service->wait_ready());
  const auto steps_above = [&](uint64_t least) {
    SchedulerNumbers n;
    while ((n = front.service->facts().numbers).steps <= least) {
      front.service->ask_numbers();
      std::this_thread::yield();
    }
    return n.steps;
  };
  front.ask(0, 40);
  expect_whole(front.wait(0), 0, 40);
  const uint64_t before = steps_above(30);
  ASSERT_TRUE(send_signal(front.service->facts().pid, SIGKILL));
  while (front.replaced().empty()) EXPECT_GE(front.service->facts().numbers.steps, before);
  const uint64_t lost = front.service->facts().numbers.steps;
  front.ask(1, 20);
  expect_whole(front.wait(1), 1, 20);
  const uint64_t after = steps_above(lost);
  front.service->replace();
  ASSERT_TRUE(front.service->wait_ready());
  front.ask(2, 10);
  expect_whole(front.wait(2), 2, 10);
  steps_above(after);
}

TEST(RemoteService, AnswersGoOnWhenTheWorkerDies) {
  for (const char* mode : {"crash", "exit"}) {
    Front front(mode, 50);  // each process ends after 50 tokens
    for (size_t n = 0; n < 8; n++) front.ask(n, 30);
    for (size_t n = 0; n < 8; n++) expect_whole(front.wait(n), n, 30);
    ASSERT_GE(front.replaced().size(), 4u);
    EXPECT_NE(front.replaced()[0].find(mode == std::string("crash") ? "signal 9" : "exit code 3"),
              std::string::npos)
        << front.replaced()[0];
  }
}

TEST(RemoteService, AnswersGoOnWhenItIsKilledFromOutside) {
  Front front("well");
  for (size_t n = 0; n < 4; n++) front.ask(n, 300);
  for (size_t at : {20, 60, 120}) {
    front.wait(0, at);
    send_signal(front.service->facts().pid, SIGKILL);  // 0 while the next one starts
  }
  for (size_t n = 0; n < 4; n++) expect_whole(front.wait(n), n, 300);
  EXPECT_GE(front.service->facts().restarts, 1);
}

// Exchanged as fast as they come, each worker still tells something.
TEST(RemoteService, ExchangedInALoopItsAnswersGoOn) {
  Front front("well");
  constexpr size_t kAnswers = 5;
  for (size_t n = 0; n < kAnswers; n++) front.ask(n, 60);
  const auto told = [&](bool* all) {
    size_t sum = 0;
    *all = true;
    for (size_t n = 0; n < kAnswers; n++) {
      const Answer a = front.so_far(n);
      sum += a.tokens.size(), *all &= a.end.has_value();
    }
    return sum;
  };
  bool all = false;
  int exchanged = 0;
  for (told(&all); !all; exchanged++) {
    front.service->replace();
    ASSERT_TRUE(front.service->wait_ready());
    // A token of each but the first and the last one; ends are something, too.
    EXPECT_GE(told(&all) + kAnswers + 2, size_t(exchanged));
  }
  EXPECT_GT(exchanged, 2);
  for (size_t n = 0; n < kAnswers; n++) expect_whole(front.wait(n), n, 60);
  EXPECT_EQ(front.service->facts().restarts, 0) << "an exchange is no loss";
}

TEST(RemoteService, AWorkerThatHangsIsReplaced) {
  const auto quick = [](WorkerSettings& s) {
    s.silence = std::chrono::milliseconds(3000), s.standstill = std::chrono::milliseconds(3000);
  };
  for (const char* mode : {"engine-hangs", "stopped"}) {
    Front front(mode, 12, quick);
    front.ask(0, 20);
    expect_whole(front.wait(0), 0, 20);
    EXPECT_EQ(front.replaced().size(), 1u) << mode;
  }
}

TEST(RemoteService, AWorkerThatLiesIsReplacedAndNothingOfTheLieIsTold) {
  for (const char* mode : {"lie-index", "lie-token", "lie-top"}) {
    Front front(mode, 12);
    front.ask(0, 20);
    expect_whole(front.wait(0), 0, 20);
    EXPECT_EQ(front.replaced().size(), 1u) << mode;
  }
}

TEST(RemoteService, WaitsToBeAdmittedTheFirstTimeAndNotAsAReplacement) {
  const auto asks = [](WorkerSettings& s) { s.asks_for_memory = true; };
  for (const bool lost_before : {false, true}) {
    Front front("plans", 1 << 30, asks);
    auto planned = front.service->wait_planned();
    ASSERT_TRUE(planned && *planned);
    EXPECT_EQ((*planned)->needs.at(0).total, 10u);
    EXPECT_FALSE(front.service->facts().ready);
    if (lost_before) {
      ASSERT_TRUE(send_signal(front.service->facts().pid, SIGKILL));
      while (front.service->facts().restarts == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      planned = front.service->wait_planned();
      EXPECT_TRUE(planned && !*planned);
    }
    front.service->admit();
    ASSERT_TRUE(front.service->wait_ready());
    planned = front.service->wait_planned();
    EXPECT_TRUE(planned && !*planned);
    front.ask(0, 300);
    front.wait(0, 50);
    ASSERT_TRUE(send_signal(front.service->facts().pid, SIGKILL));
    expect_whole(front.wait(0), 0, 300);
    front.service->replace();
    ASSERT_TRUE(front.service->wait_ready());
    front.ask(1, 5);
    expect_whole(front.wait(1), 1, 5);
  }
  Front unasked("plans");
  EXPECT_TRUE(unasked.service->wait_ready());
  Front refused("plans", 1 << 30, asks);
  ASSERT_TRUE(refused.service->wait_planned());
  const int pid = refused.service->facts().pid;
  refused.service.reset();  // it ends, though it waits
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(RemoteService, WhatCannotBeAWorkerIsToldWithItsReason) {
  for (const auto& [mode, why] :
       std::map<std::string, std::string>{{"does-not-load", "the model does not fit"},
                                          {"never-starts", "exit code 1"},
                                          {"silent", "does not become ready"},
                                          {"not-a-worker", "not an object"},
                                          {"deep", "not an object"},
                                          {"no-end", "without an end"},
                                          {"other-version", "another version of gimbal"},
                                          {"unknown-request", "has no finish"}}) {
    Front front(mode, 0, [&](WorkerSettings& s) {
      s.attempts = 1;
      if (mode == "silent") s.longest_load = std::chrono::milliseconds(300);
    });
    front.ask(0, 5);
    const Answer a = front.wait(0);
    ASSERT_TRUE(a.failed) << mode;
    EXPECT_NE(a.failed->message.find(why), std::string::npos) << mode << ": " << a.failed->message;
    if (mode == "does-not-load") {
      auto ready = front.service->wait_ready();
      ASSERT_FALSE(ready);
      EXPECT_EQ(ready.error().code, Code::OutOfMemory);
      EXPECT_EQ(ready.error().remedy, "take a smaller one");
      EXPECT_FALSE(front.service->submit(new_request_id(), {}, {}));
    }
  }
}

// Its client is gone: the next worker must not compute the rest for no one.
TEST(RemoteService, ACancelledRequestEndsWithTheWorkerThatLosesIt) {
  Front front("crash-at-cancel");
  const uint64_t id = front.ask(0, 100'000);
  front.ask(1, 200);
  front.wait(0, 5), front.wait(1, 5);
  front.service->cancel(id);
  const Answer a = front.wait(0);
  ASSERT_TRUE(a.end);
  EXPECT_EQ(a.end->finish, Finish::Cancelled);
  EXPECT_EQ(front.replaced().size(), 1u);
  expect_whole(front.wait(1), 1, 200);
}

// Whose answer would it be?
TEST(RemoteService, AnIdThatIsInUseIsRefused) {
  Front front("well");
  const uint64_t id = front.ask(0, 100'000);
  front.wait(0, 1);
  std::promise<Error> refused;
  GenerationSink sink;
  sink.failed = [&](const Error& e) { refused.set_value(e); };
  GenerationRequest other;
  other.prompt = {1, 2, 3};
  ASSERT_TRUE(front.service->submit(id, std::move(other), std::move(sink)));
  EXPECT_EQ(refused.get_future().get().code, Code::Usage);
  front.service->cancel(id);
  EXPECT_EQ(front.wait(0).end->finish, Finish::Cancelled);
}

TEST(RemoteService, CancelEndsARequestAndRefusalsComeBack) {
  Front front("well");
  const uint64_t id = front.ask(0, 100'000);
  front.wait(0, 5);
  front.service->cancel(id);
  EXPECT_EQ(front.wait(0).end->finish, Finish::Cancelled);
  front.service->cancel(id);      // has ended
  front.service->cancel(999999);  // never was
  front.ask(1, 5, "refused");
  const Answer refused = front.wait(1);
  ASSERT_TRUE(refused.failed);
  EXPECT_EQ(refused.failed->reason, std::string(reason::kContextFull));
  EXPECT_EQ(refused.failed->field, std::string("prompt"));
  front.ask(2, 100'000);
  front.wait(2, 3);
  front.service.reset();
  EXPECT_TRUE(front.wait(2).failed);
}

// The log-probabilities of a prompt: each once and in order, whatever the worker does meanwhile.
TEST(RemoteService, APromptIsScoredOnceWhenTheWorkerDies) {
  for (const char* mode : {"well", "crash", "lie-index", "lie-token", "lie-top"}) {
    Front front(mode, 4);
    std::promise<GenerationEnd> ended;
    std::vector<TokenEvent> scored;
    GenerationRequest r;
    r.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, r.max_tokens = 2, r.logprobs = 0,
    r.scores_prompt = true;
    GenerationSink sink;
    sink.token = [&](const TokenEvent&) { EXPECT_EQ(scored.size(), 11u) << "the prompt first"; };
    sink.scored = [&](const TokenEvent& t) { scored.push_back(t); };
    sink.end = [&](const GenerationEnd& e) { ended.set_value(e); };
    sink.failed = [&](const Error& e) { ended.set_value({Finish::Length, e.message, ""}); };
    ASSERT_TRUE(front.service->submit(new_request_id(), std::move(r), std::move(sink)));
    const GenerationEnd end = ended.get_future().get();
    EXPECT_EQ(end.tokens, 2) << mode << end.text;
    ASSERT_EQ(scored.size(), 11u);
    for (size_t i = 0; i < scored.size(); i++)
      EXPECT_TRUE(scored[i].index == int(i) + 1 && scored[i].logprob == scripted_score(Token(i + 2)));
    EXPECT_EQ(front.replaced().empty(), std::string(mode) == "well") << mode;
  }
}

TEST(RemoteService, EmbeddingsGoOnWhenTheWorkerDies) {
  for (const char* mode : {"well", "crash"}) {
    Front front(mode, 7);
    std::vector<std::vector<Token>> texts;
    for (int i = 0; i < 40; i++) texts.push_back(std::vector<Token>(size_t(i % 5 + 1), i));
    size_t next = 0;
    auto ok = front.service->embed(texts, [&](size_t i, std::span<const float> v) -> Status {
      EXPECT_EQ(i, next++);
      EXPECT_EQ(std::vector<float>(v.begin(), v.end()),
                (std::vector<float>{float(i) / 3, -1e-30f, float(i % 5 + 1)}));
      return Done{};
    });
    EXPECT_TRUE(ok) << ok.error().message;
    EXPECT_EQ(next, 40u);
    EXPECT_EQ(front.replaced().empty(), std::string(mode) == "well");
    const auto refused = front.service->embed(
        std::vector<std::vector<Token>>{{}}, [](size_t, std::span<const float>) -> Status { return Done{}; });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::Usage);
  }
}

TEST(RemoteService, EmbeddingsTakeTurnsAndFailAlone) {
  Front front("well");
  ASSERT_TRUE(front.service->wait_ready());
  std::vector<std::thread> clients;
  for (int c = 0; c < 6; c++)
    clients.emplace_back([&, c] {
      std::vector<std::vector<Token>> texts;
      for (int i = 0; i < (c == 0 ? 2000 : 5); i++) texts.push_back({c, i});
      if (c == 3) texts[2].clear();
      int next = 0;
      const auto ok = front.service->embed(texts, [&](size_t i, std::span<const float> v) -> Status {
        EXPECT_EQ(int(i), next++);
        EXPECT_EQ(v[0], float(c) / 3);
        return Done{};
      });
      EXPECT_EQ(bool(ok), c != 3);
      if (c != 3) { EXPECT_EQ(next, int(texts.size())); }
    });
  for (std::thread& c : clients) c.join();
  EXPECT_TRUE(front.replaced().empty());
}

}  // namespace
}  // namespace gimbal::test

int main(int argc, char** argv) { return gimbal::test::main_of_front(argc, argv); }
