// The front's side of a worker process: whatever the worker does, each answer is whole, each token told once.
// The worker here is this test's own program with a scripted engine, whose answers depend on the prompt
// alone, and which misbehaves as its mode says; serve_test.sh has the real one.
#include "workers/remote_service.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "workers/channel.h"
#include "workers/worker_loop.h"
#include "workers/worker_process.h"

namespace gimbal {
namespace {

// ---- the scripted engine

Token scripted_token(const std::vector<Token>& prompt, int index) {
  uint64_t h = 1469598103934665603u;
  for (Token t : prompt) h = (h ^ uint64_t(t)) * 1099511628211u;
  return Token((h + uint64_t(index) * 7919u) % 97);
}
std::string scripted_text(Token t) { return "<" + std::to_string(t) + ">"; }

class ScriptedService : public GenerationService {
 public:
  explicit ScriptedService(std::string mode, int at)
      : mode_(std::move(mode)), at_(at), thread_([this] { run(); }) {}
  ~ScriptedService() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Result<uint64_t> submit(GenerationRequest r, GenerationSink s) override {
    if (r.client == "refused")
      return Error{Code::Usage, "refused as the script says", "", reason::kContextFull, "prompt"};
    const std::lock_guard lock(mutex_);
    running_[++last_] = {std::move(r), std::move(s)};
    wake_.notify_all();
    return last_;
  }
  void cancel(uint64_t id) override {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
    wake_.notify_all();
  }
  std::atomic<uint64_t> steps = 0;

 private:
  struct Job {
    GenerationRequest r;
    GenerationSink s;
  };
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || !running_.empty(); });
      if (stop_) return;
      std::vector<std::pair<uint64_t, Job>> now(running_.begin(), running_.end());
      const std::vector<uint64_t> gone = std::exchange(cancelled_, {});
      lock.unlock();
      std::vector<uint64_t> done;
      for (auto& [id, job] : now)
        if (step(job, std::find(gone.begin(), gone.end(), id) != gone.end())) done.push_back(id);
      steps++;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      lock.lock();
      for (auto& [id, job] : now)
        if (running_.count(id)) running_[id].r.written = job.r.written;
      for (uint64_t id : done) running_.erase(id);
    }
  }
  bool step(Job& job, bool cancelled) {
    GenerationEnd end;
    end.prompt_tokens = int(job.r.prompt.size()), end.tokens = int(job.r.written.size());
    if (cancelled || end.tokens == job.r.max_tokens) {
      end.finish = cancelled ? Finish::Cancelled : Finish::Length;
      if (mode_ == "lie-count") end.tokens++;
      job.s.end(end);
      return true;
    }
    TokenTold told;
    told.index = end.tokens, told.token = scripted_token(job.r.prompt, told.index),
    told.text = scripted_text(told.token);
    if (told_++ >= at_) misbehave(told);
    job.r.written.push_back(told.token);
    job.s.token(told);
    return false;
  }
  void misbehave(TokenTold& told) {
    if (mode_ == "crash") raise(SIGKILL);
    if (mode_ == "exit") _exit(3);
    if (mode_ == "engine-hangs")
      for (;;) pause();
    if (mode_ == "stopped") raise(SIGSTOP);
    if (mode_ == "lie-index") told.index++;
    if (mode_ == "lie-token") told.token = 97;
    if (mode_ == "lie-top") told.top.resize(5);
  }

  const std::string mode_;
  const int at_;
  int told_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<uint64_t, Job> running_;
  std::vector<uint64_t> cancelled_;
  uint64_t last_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

// Numbers that depend on the text alone; ends the process after `at` of them.
auto scripted_embed(const std::string& mode, int at) {
  return [mode, at, told = 0](std::span<const std::vector<Token>> texts,
                              const RemoteService::EmbeddingSink& sink) mutable -> Status {
    for (size_t i = 0; i < texts.size(); i++) {
      if (texts[i].empty()) return Error{Code::Usage, "a text is empty", ""};
      if (told++ >= at && mode == "crash") raise(SIGKILL);
      const std::vector<float> values = {float(texts[i][0]) / 3, -1e-30f, float(texts[i].size())};
      if (auto ok = sink(i, values); !ok) return ok;
    }
    return Done{};
  };
}

int scripted_worker(const std::string& mode, int at) {
  if (mode == "does-not-load") {
    tell_failed(kWorkerSocket, {Code::OutOfMemory, "the model does not fit", "take a smaller one"});
    return 1;
  }
  if (mode == "never-starts") return 1;
  if (mode == "silent") {
    for (;;) pause();
  }
  if (mode == "not-a-worker" || mode == "other-version" || mode == "no-end" || mode == "unknown-request" ||
      mode == "deep") {
    const std::string hello = encode(wire::FromWorker(wire::Hello{"cpu:0", 1, 1, true, 1, "[]"}));
    std::string text = "GET / HTTP/1.1\n";
    if (mode == "other-version")
      text = R"({"hello": {"device": "cpu:0", "context": 1, "pid": 1, "protocol": 999}})"
             "\n";
    if (mode == "unknown-request") text = hello + "\n" + R"({"end": {"id": 77}})" + "\n";
    if (mode == "deep") text = std::string(100'000, '[') + "\n";
    const std::string piece(1 << 20, 'x');
    for (int i = 0; i < (mode == "no-end" ? 64 : 1); i++) {
      const std::string& now = mode == "no-end" ? piece : text;
      for (size_t sent = 0; sent < now.size();) {
        const ssize_t n = write(kWorkerSocket, now.data() + sent, now.size() - sent);
        if (n <= 0) return 1;
        sent += size_t(n);
      }
    }
    for (;;) pause();
  }
  tell_loading(kWorkerSocket, 1, 2);
  ScriptedService service(mode, at);
  wire::Hello hello;
  hello.device = "cpu:0", hello.context = 4096, hello.pid = int(getpid());
  return serve_front({kWorkerSocket, &service,
                      [&] {
                        SchedulerNumbers n;
                        n.steps = service.steps;
                        return n;
                      },
                      scripted_embed(mode, at)},
                     hello)
             ? 0
             : 1;
}

// ---- the front

struct Answer {
  std::vector<Token> tokens;
  std::string text;
  std::optional<GenerationEnd> end;
  std::optional<Error> failed;
  bool in_order = true;
};

class Front {
 public:
  explicit Front(const std::string& mode, int at = 1 << 30,
                 std::function<void(WorkerSettings&)> change = {}) {
    WorkerSettings s;
    s.command = {"/proc/self/exe", "scripted-worker", mode, std::to_string(at)};
    s.vocabulary = 97;
    s.replaced = [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      replaced_.push_back(why);
    };
    if (change) change(s);
    auto made = RemoteService::start(std::move(s));
    EXPECT_TRUE(made);
    service = std::move(*made);
  }
  ~Front() { service.reset(); }

  uint64_t ask(size_t n, int tokens, const std::string& client = "") {
    const std::lock_guard lock(mutex_);
    if (answers_.size() <= n) answers_.resize(n + 1);
    GenerationRequest r;
    r.prompt = {1, int(n), 3}, r.max_tokens = tokens, r.client = client;
    GenerationSink sink;
    sink.token = [this, n](const TokenTold& t) {
      const std::lock_guard held(mutex_);
      Answer& a = answers_[n];
      a.in_order &= t.index == int(a.tokens.size());
      a.tokens.push_back(t.token), a.text += t.text;
      changed_.notify_all();
    };
    sink.end = [this, n](const GenerationEnd& e) {
      const std::lock_guard held(mutex_);
      EXPECT_FALSE(answers_[n].end || answers_[n].failed);
      answers_[n].end = e;
      changed_.notify_all();
    };
    sink.failed = [this, n](const Error& e) {
      const std::lock_guard held(mutex_);
      EXPECT_FALSE(answers_[n].end || answers_[n].failed);
      answers_[n].failed = e;
      changed_.notify_all();
    };
    auto id = service->submit(std::move(r), std::move(sink));
    EXPECT_TRUE(id);
    return id ? *id : 0;
  }
  Answer wait(size_t n, size_t tokens = SIZE_MAX) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(120), [&] {
      return answers_[n].end || answers_[n].failed || answers_[n].tokens.size() >= tokens;
    }));
    return answers_[n];
  }
  std::vector<std::string> replaced() {
    const std::lock_guard lock(mutex_);
    return replaced_;
  }
  std::unique_ptr<RemoteService> service;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> answers_ = std::vector<Answer>(64);
  std::vector<std::string> replaced_;
};

void expect_whole(const Answer& a, size_t n, int tokens) {
  ASSERT_TRUE(a.end) << (a.failed ? a.failed->message : "");
  EXPECT_EQ(a.end->finish, Finish::Length);
  EXPECT_TRUE(a.in_order);
  std::vector<Token> expected;
  std::string text;
  for (int i = 0; i < tokens; i++) {
    expected.push_back(scripted_token({1, int(n), 3}, i));
    text += scripted_text(expected.back());
  }
  EXPECT_EQ(a.tokens, expected);
  EXPECT_EQ(a.text, text);
}

TEST(RemoteService, TellsWhatTheWorkerComputes) {
  Front front("well");
  ASSERT_TRUE(front.service->wait_ready());
  for (size_t n = 0; n < 16; n++) front.ask(n, 20 + int(n));
  for (size_t n = 0; n < 16; n++) expect_whole(front.wait(n), n, 20 + int(n));
  EXPECT_TRUE(front.replaced().empty());
  EXPECT_EQ(front.service->facts().hello.device, "cpu:0");
  while (front.service->facts().numbers.steps <= 30) std::this_thread::yield();  // told every 2 s
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
    if (const int pid = front.service->facts().pid) kill(pid, SIGKILL);
  }
  for (size_t n = 0; n < 4; n++) expect_whole(front.wait(n), n, 300);
  EXPECT_GE(front.service->facts().restarts, 1);
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

TEST(RemoteService, ARequestThatEndsEveryWorkerIsGivenUpAndOthersGoOn) {
  Front front("crash", 0);
  front.ask(0, 5);
  const Answer a = front.wait(0);
  ASSERT_TRUE(a.failed);
  EXPECT_NE(a.failed->message.find("lost 3 times"), std::string::npos) << a.failed->message;
  Front liar("lie-count");
  liar.ask(0, 5);
  EXPECT_TRUE(liar.wait(0).failed);
}

TEST(RemoteService, WhatCannotBeAWorkerIsToldWithItsReason) {
  for (const auto& [mode, why] :
       std::map<std::string, std::string>{{"does-not-load", "the model does not fit"},
                                          {"never-starts", "exit code 1"},
                                          {"silent", "does not become ready"},
                                          {"not-a-worker", "no object"},
                                          {"deep", "no object"},
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
      EXPECT_FALSE(front.service->submit({}, {}));
    }
  }
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
}  // namespace gimbal

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "scripted-worker")
    return gimbal::scripted_worker(argv[2], std::atoi(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
