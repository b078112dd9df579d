// The front's side of a worker process, for tests: a service whose worker is the test's own program with a
// scripted engine, and its clients.
#pragma once
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "workers/remote_service.h"
#include "workers/scripted_worker.h"

namespace gimbal::test {

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
    s.load.model = "scripted", s.vocabulary = 97;
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
    sink.token = [this, n](const TokenEvent& t) {
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
    const uint64_t id = new_request_id();
    EXPECT_TRUE(service->submit(id, std::move(r), std::move(sink)));
    return id;
  }
  Answer so_far(size_t n) {
    const std::lock_guard lock(mutex_);
    return answers_[n];
  }
  Answer wait(size_t n, size_t tokens = SIZE_MAX) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(120), [&] {
      return answers_[n].end || answers_[n].failed || answers_[n].tokens.size() >= tokens;
    }));
    return answers_[n];
  }
  void forget(size_t n) {
    const std::lock_guard lock(mutex_);
    answers_[n] = {};
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

inline void expect_whole(const Answer& a, size_t n, int tokens) {
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

// The test's main(): the test, or its worker.
inline int main_of_front(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "scripted-worker")
    return scripted_worker(argv[2], std::atoi(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace gimbal::test
