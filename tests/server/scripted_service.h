// A service that answers with a test's text, token by token, from a thread of its own: for tests of the APIs,
// with known answers. It computes nothing.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "runtime/stop_matcher.h"
#include "scheduler/request.h"

namespace gimbal::test {

class ScriptedService final : public GenerationService {
 public:
  explicit ScriptedService(const Tokenizer& tokenizer) : tokenizer_(tokenizer), thread_([this] { run(); }) {}
  ~ScriptedService() override { finish(); }
  // Nothing more is reported.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // The answers to come, in turn; the last one stays. One that `never_ends` waits to be cancelled after its
  // text.
  void says(std::string text, bool never_ends = false) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text), never_ends_ = never_ends;
  }
  void fails(Error e, int after_tokens) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(e), fails_after_ = after_tokens;
  }
  void refuses(Error e) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(e);
  }
  std::vector<GenerationRequest> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  bool was_cancelled() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !cancelled_.empty(); });
  }

  Status submit(uint64_t id, GenerationRequest r, GenerationSink sink) override {
    const std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    asked_.push_back(r);
    jobs_.push_back({id, std::move(r), std::move(sink)});
    changed_.notify_all();
    return Done{};
  }
  void cancel(uint64_t id) override {
    const std::lock_guard lock(mutex_);
    cancelled_.insert(id);
    changed_.notify_all();
  }

 private:
  struct Job {
    uint64_t id;
    GenerationRequest request;
    GenerationSink sink;
  };

  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
      if (ends_ && jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      const std::string text = text_;
      const bool never_ends = never_ends_;
      const auto failure = failure_;
      const int fails_after = fails_after_;
      lock.unlock();
      serve(job, text, never_ends, failure, fails_after);
    }
  }

  void serve(Job& job, const std::string& text, bool never_ends, const std::optional<Error>& failure,
             int fails_after) {
    if (job.sink.begun) job.sink.begun();
    GenerationEnd end;
    end.prompt_tokens = int(job.request.prompt.size());
    end.finish = Finish::StopToken;
    StreamDecoder decoder(tokenizer_);
    for (Token t : job.request.prompt) decoder.push(t);
    StopMatcher stops(job.request.stops);
    // The prompt's i-th token has -i/4, and the token of that number is the most likely one there.
    const auto score = [&](Token token, int index) {
      TokenEvent told{token, index, "", -0.25f * float(index), {}, {}, 0};
      for (int i = 0; i < job.request.logprobs; i++) told.top.push_back({Token(index + i), -0.125f});
      job.sink.scored(told);
    };
    for (int i = 1; job.request.scores_prompt && i < end.prompt_tokens; i++)
      score(job.request.prompt[size_t(i)], i);
    for (Token t : tokenizer_.encode(text, {.add_bos = false, .parse_special = true})) {
      if (failure && end.tokens == fails_after) return job.sink.failed(*failure);
      if (job.request.max_tokens >= 0 && end.tokens == job.request.max_tokens) {
        end.finish = Finish::Length;
        break;
      }
      auto out = stops.push(decoder.push(t));
      TokenEvent told{t, end.tokens++, out.text, 0, {}, {}, 0};
      if (job.request.logprobs >= 0) told.logprob = -0.5f;
      for (int i = 0; i < job.request.logprobs; i++) told.top.push_back({Token(t + i), -0.5f - float(i)});
      job.sink.token(told);
      if (out.stopped) {
        end.finish = Finish::StopString, end.stop = out.which;
        break;
      }
    }
    if (never_ends) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || cancelled_.contains(job.id); });
      end.finish = Finish::Cancelled;
    } else {
      end.text = stops.push(decoder.finish()).text + stops.finish();
    }
    if (job.request.scores_prompt && end.finish == Finish::StopToken)
      score(tokenizer_.eos(), end.prompt_tokens + end.tokens);
    job.sink.end(end);
  }

  const Tokenizer& tokenizer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_ = "once upon a time";
  bool never_ends_ = false, ends_ = false;
  std::optional<Error> failure_, refusal_;
  int fails_after_ = 0;
  std::deque<Job> jobs_;
  std::set<uint64_t> cancelled_;
  std::vector<GenerationRequest> asked_;
  std::thread thread_;
};

}  // namespace gimbal::test
