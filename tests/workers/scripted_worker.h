// A worker for tests of the front's side: a scripted engine, whose answers depend on the prompt alone, and
// which misbehaves as its mode says.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "workers/remote_service.h"
#include "workers/worker_loop.h"
#include "workers/worker_process.h"

namespace gimbal::test {

inline Token scripted_token(const std::vector<Token>& prompt, int index) {
  uint64_t h = 1469598103934665603u;
  for (Token t : prompt) h = (h ^ uint64_t(t)) * 1099511628211u;
  return Token((h + uint64_t(index) * 7919u) % 97);
}
inline float scripted_score(Token t) { return -0.25f * float(t); }
inline constexpr Token kPoison = 13;  // a prompt with it ends the workers whose mode says so
inline std::string scripted_text(Token t) { return "<" + std::to_string(t) + ">"; }

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
  Status submit(uint64_t id, GenerationRequest r, GenerationSink s) override {
    if (mode_ == "poison-submit" && r.prompt[1] == kPoison) raise(SIGKILL);
    if (r.client == "refused")
      return Error{Code::Usage, "refused as the script says", "", reason::kContextFull, "prompt"};
    const std::lock_guard lock(mutex_);
    running_[id] = {std::move(r), std::move(s)};
    wake_.notify_all();
    return Done{};
  }
  void cancel(uint64_t id) override {
    if (mode_ == "crash-at-cancel") raise(SIGKILL);
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
        if (running_.count(id)) {
          running_[id].r.written = job.r.written, running_[id].r.scored = job.r.scored;
          running_[id].s.begun = nullptr;
        }
      for (uint64_t id : done) running_.erase(id);
    }
  }
  bool step(Job& job, bool cancelled) {
    if (job.s.begun) std::exchange(job.s.begun, nullptr)();
    if (job.r.scores_prompt && !cancelled && size_t(job.r.scored) + 1 < job.r.prompt.size()) {
      score(job);
      return false;
    }
    GenerationEnd end;
    end.prompt_tokens = int(job.r.prompt.size()), end.tokens = int(job.r.written.size());
    if (cancelled || end.tokens == job.r.max_tokens) {
      end.finish = cancelled ? Finish::Cancelled : Finish::Length;
      if (mode_ == "lie-count") end.tokens++;
      job.s.end(end);
      return true;
    }
    TokenEvent told;
    told.index = end.tokens, told.token = scripted_token(job.r.prompt, told.index),
    told.text = scripted_text(told.token);
    if (mode_ == "poison-step" && job.r.prompt[1] == kPoison && told.index == at_) raise(SIGKILL);
    else if (told_++ >= at_) misbehave(told);
    job.r.written.push_back(told.token);
    job.s.token(told);
    return false;
  }
  void score(Job& job) {
    TokenEvent told;
    told.index = ++job.r.scored, told.token = job.r.prompt[size_t(told.index)],
    told.logprob = scripted_score(told.token);
    if (told_++ >= at_) misbehave(told);
    job.s.scored(told);
  }
  void misbehave(TokenEvent& told) {
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
  bool stop_ = false;
  std::thread thread_;
};

// Numbers that depend on the text alone; ends the process after `at` of them.
inline auto scripted_embed(const std::string& mode, int at) {
  return [mode, at, told = 0](std::span<const std::vector<Token>> texts,
                              const RemoteService::EmbeddingSink& sink) mutable -> Status {
    for (size_t i = 0; i < texts.size(); i++) {
      if (texts[i].empty()) return Error{Code::Usage, "a text is empty", ""};
      if (told++ >= at && mode == "crash") raise(SIGKILL);
      if (texts[i][0] == kPoison && mode == "poison-step") raise(SIGKILL);
      const std::vector<float> values = {float(texts[i][0]) / 3, -1e-30f, float(texts[i].size())};
      if (auto ok = sink(i, values); !ok) return ok;
    }
    return Done{};
  };
}

inline int scripted_worker(const std::string& mode, int at) {
  if (mode == "does-not-load") {
    send_failed(kWorkerSocket, {Code::OutOfMemory, "the model does not fit", "take a smaller one"});
    return 1;
  }
  if (mode == "never-starts") return 1;
  if (mode == "silent") {
    for (;;) pause();
  }
  if (mode == "not-a-worker" || mode == "other-version" || mode == "no-end" || mode == "unknown-request" ||
      mode == "deep") {
    const std::string hello = encode(wire::FromWorker(wire::Hello{1, 1}));
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
  auto load = wait_for_load(kWorkerSocket);
  if (!load || load->model != "scripted") return 1;
  if (mode == "plans" && !ask_for_memory(kWorkerSocket, {{{"cpu:0", 10, 8, 0, 9}}})) return 1;
  send_loading(kWorkerSocket, 1, 2);
  ScriptedService service(mode, at);
  wire::Hello hello;
  hello.devices = {{"cpu:0"}}, hello.context = 4096, hello.pid = int(getpid());
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

}  // namespace gimbal::test
