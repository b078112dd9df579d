// The requests that simulated clients send, and what each of them says alone: computed once, by a scheduler
// that has nothing else to do.
#pragma once
#include "base/format.h"
#include "scheduler/served.h"

namespace gimbal::test {

// A service of one thread: a scheduler that is stepped by hand.
class SteppedService final : public GenerationService {
 public:
  SteppedService(const ModelPtr& model, OnDeviceLost lost, const SchedulerOptions& options)
      : capacity_(Scheduler::capacity(model->plan())),
        vocabulary_(model->config().vocabulary),
        scheduler_(model, std::move(lost), options) {}
  Status submit(uint64_t id, GenerationRequest r, GenerationSink sink) override {
    if (auto ok = ScheduledRequest::check(r, vocabulary_, 0, capacity_); !ok) return ok.error();
    auto constraint = beginning_of(r);
    scheduler_.add(std::make_unique<ScheduledRequest>(id, std::move(r), std::move(sink), any_tokenizer(),
                                                      capacity_, std::move(constraint)));
    return Done{};
  }
  void cancel(uint64_t id) override { scheduler_.cancel(id); }
  bool idle() const { return scheduler_.idle(); }
  Status step() { return scheduler_.step(); }
  void end_all() { scheduler_.end_all(nullptr); }
  const SchedulerNumbers& numbers() const { return scheduler_.numbers(); }

 private:
  // Each grammar is compiled once.
  static std::optional<Constraint> beginning_of(const GenerationRequest& r) {
    static std::map<std::string, std::optional<Constraint>> all;
    const auto known = all.find(r.grammar);
    return known != all.end() ? known->second
                              : all.emplace(r.grammar, constraint_of(r, any_tokenizer())).first->second;
  }
  const int capacity_, vocabulary_;
  Scheduler scheduler_;
};

// What a client heard of a request.
struct Spoken {
  std::vector<TokenEvent> tokens, scored;
  std::optional<GenerationEnd> end;
  std::optional<Error> failed;
  std::string wrong;  // a broken promise of the sink; empty: none

  bool over() const { return end || failed; }
  std::string text() const {
    std::string all;
    for (const TokenEvent& t : tokens) all += t.text;
    return all + (end ? end->text : "");
  }
  GenerationSink sink(std::function<void()> heard = {}) {
    const auto add = [this, heard](std::vector<TokenEvent>& to, const TokenEvent& t, bool in_order) {
      if (over()) wrong = "a token behind the end";
      if (!in_order) wrong = format("token {} is missing, or came twice", to.size());
      to.push_back(t);
      if (heard) heard();
    };
    const auto last = [this](auto& place, const auto& what) {
      if (over()) wrong = "two ends";
      place = what;
    };
    GenerationSink s;
    s.token = [this, add](const TokenEvent& t) { add(tokens, t, t.index == int(tokens.size())); };
    s.scored = [this, add](const TokenEvent& t) {
      add(scored, t, scored.empty() || t.index > scored.back().index);
    };
    s.end = [this, last](const GenerationEnd& e) { last(end, e); };
    s.failed = [this, last](const Error& e) { last(failed, e); };
    return s;
  }
};

class Answers {
 public:
  // The first forms have no grammar, the others have.
  static constexpr int kFree = 64, kForms = 80, kContext = 256;

  explicit Answers(OnCpu& on_cpu) {
    SteppedService alone(on_cpu.shared(), on_cpu.on_device_lost(), {16, 100});
    std::mt19937 random(7);
    for (int i = 0; i < kForms; i++) {
      forms_.push_back(form(random));
      if (i >= kFree)
        forms_.back().grammar =
            std::array{"root ::= (\" \"? [a-z]+)+ \".\"", "root ::= \"{\" [0-9]+ (\", \" [0-9]+)* \"}\"",
                       "root ::= (\"a\" | \"b\" root)"}[size_t(i) % 3];
      Spoken s;
      EXPECT_TRUE(alone.submit(uint64_t(i + 1), forms_.back(), s.sink()));
      while (!alone.idle()) EXPECT_TRUE(alone.step());
      EXPECT_TRUE(s.end && s.wrong.empty()) << s.wrong;
      alone_.push_back(std::move(s));
    }
    alone.end_all();
  }

  const GenerationRequest& form(size_t i) const { return forms_[i]; }
  // The form of a request; kForms: none.
  size_t form_of(const GenerationRequest& r) const {
    return size_t(std::find_if(forms_.begin(), forms_.end(),
                               [&](const GenerationRequest& f) {
                                 return f.prompt == r.prompt && f.sampler.seed == r.sampler.seed;
                               }) -
                  forms_.begin());
  }
  // The prompt and the answer alone.
  std::vector<Token> text(size_t i) const {
    std::vector<Token> all = forms_[i].prompt;
    for (const TokenEvent& t : alone_[i].tokens) all.push_back(t.token);
    return all;
  }
  // How an answer differs from the one alone; empty: not at all. A cancelled one is a beginning of it.
  std::string difference(size_t i, const Spoken& got) const {
    const Spoken& want = alone_[i];
    if (!got.wrong.empty()) return got.wrong;
    if (!got.end) return "";
    const bool cancelled = got.end->finish == Finish::Cancelled;
    if (got.end->tokens != int(got.tokens.size())) return "another number of tokens than it sent";
    if (!cancelled && got.end->finish != want.end->finish)
      return format("finish {} for {}", name_of(got.end->finish), name_of(want.end->finish));
    if (!cancelled && got.text() != want.text()) return "another text";
    if (auto why = compared(got.tokens, want.tokens, cancelled, "token"); !why.empty()) return why;
    return compared(got.scored, want.scored, cancelled, "scored token");
  }

 private:
  static GenerationRequest form(std::mt19937& random) {
    GenerationRequest r;
    const auto below = [&](unsigned n) { return int(random() % n); };
    // Beginnings that requests share: none, more than a page, several pages.
    const int shared = std::array{0, 70, 140}[size_t(below(3))];
    for (int i = 0; i < shared; i++) r.prompt.push_back(Token(3 + (i * 37 + i * i % 7) % 500));
    for (int i = 1 + below(30); i > 0; i--) r.prompt.push_back(Token(3 + below(500)));
    r.max_tokens = below(4) ? 1 + below(24) : below(2);
    r.sampler.greedy = below(2);
    r.sampler.temperature = 0.9f, r.sampler.seed = random();
    r.logprobs = below(3) ? -1 : below(3);
    r.scores_prompt = r.logprobs >= 0 && below(2);
    r.ignore_stop_tokens = below(2);
    if (below(4) == 0) r.stops = {"he", " a "};
    if (below(6) == 0) r.sampler.repeat_penalty = 1.2f;
    r.client = std::array{"a", "b", "c"}[size_t(below(3))];
    return r;
  }
  static std::string compared(const std::vector<TokenEvent>& got, const std::vector<TokenEvent>& want,
                              bool beginning, const char* what) {
    if (beginning ? got.size() > want.size() : got.size() != want.size())
      return format("{} {}s, {} alone", got.size(), what, want.size());
    for (size_t i = 0; i < got.size(); i++) {
      bool same = got[i].token == want[i].token && same_bits(got[i].logprob, want[i].logprob) &&
                  got[i].index == want[i].index && got[i].top.size() == want[i].top.size();
      for (size_t k = 0; same && k < got[i].top.size(); k++)
        same = got[i].top[k].token == want[i].top[k].token &&
               same_bits(got[i].top[k].logprob, want[i].top[k].logprob);
      if (!same) return format("{} {} differs", what, i);
    }
    return "";
  }

  std::vector<GenerationRequest> forms_;
  std::vector<Spoken> alone_;
};

}  // namespace gimbal::test
