// A scheduler that a test steps by hand, and texts for it.
#pragma once
#include "scheduler/served.h"

namespace gimbal::test {

// Requests of one model by hand, a step at a time.
class Desk {
 public:
  explicit Desk(const RunOptions& run, int prompt_rows = 16, const std::string& model = kStories,
                const std::vector<Lora>& lora = {})
      : on_cpu_(model, run, 1, lora),
        serving_(on_cpu_.shared(), on_cpu_.on_device_lost(), {prompt_rows, 100}) {}

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
    serving_.add(std::make_unique<ScheduledRequest>(id, std::move(r), sink_of(*heard_.back(), 0, on_token_),
                                                    any_tokenizer(),
                                                    Scheduler::capacity(on_cpu_.model().plan())));
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
  Scheduler& serving() { return serving_; }

 private:
  OnCpu on_cpu_;
  std::vector<std::unique_ptr<Heard>> heard_;
  std::function<void()> on_token_;
  Scheduler serving_;
};

inline std::vector<Token> text(int n, int from) {
  std::vector<Token> t;
  for (int i = 0; i < n; i++) t.push_back(Token((i * 37 + from * 101 + i * i % 7) % 500));
  return t;
}

}  // namespace gimbal::test
