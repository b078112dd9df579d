// A request on its way: its text so far, and what picks and tells the next token. Nothing in it depends on
// other requests, nor on how often its text had to be computed anew.
#pragma once
#include <memory>
#include <optional>

#include "runtime/drafting.h"
#include "runtime/model.h"
#include "runtime/sampler.h"
#include "scheduler/masks.h"
#include "scheduler/request.h"

namespace gimbal {

struct Client;

class Generation {
 public:
  // What can be said against a request without the model. `capacity`: positions that a text can have. Errors:
  // those of GenerationService::submit.
  static Status check(const GenerationRequest&, int vocabulary, int capacity);

  // Of a request that check() found right. All that the answer depends on goes on behind what was written:
  // random numbers, penalties, half characters, stop strings, grammar. `constraint`: of
  // GenerationRequest::grammar; none: any text.
  Generation(uint64_t id, GenerationRequest, GenerationSink, const Tokenizer&, int capacity,
             std::optional<Constraint> constraint = {});

  const uint64_t id;
  const std::string client_name;

  // ---- its place among others: the scheduler's
  Client* client = nullptr;
  std::unique_ptr<Sequence> sequence;  // while it runs
  uint64_t admitted = 0;               // rises with each admission; 0: never was
  uint64_t follows = 0;                // waits for this one to compute the first `follow_until` tokens
  int follow_until = 0;
  uint64_t looked_around = UINT64_MAX;  // for one to follow, when so many had been admitted
  int checkpoint_at = 0;                // a length to remember the model's state at
  double submitted = 0;                 // base/clock.h
  void tell_begun() {                   // before each step with rows of it
    if (sink_.begun) std::exchange(sink_.begun, nullptr)();
  }

  // ---- what is guessed of it: scheduler/speculation.h
  std::unique_ptr<Drafting> drafting;  // while it runs; nullptr: nobody guesses
  int again = 0;                       // tokens to compute anew, because the model could not keep them
  uint64_t drafted = 0, accepted = 0;  // tokens

  // ---- its text
  const std::vector<Token>& text() const { return text_; }  // the prompt, and the answer until now
  int prompt_tokens() const { return int(prompt_); }
  // Tokens that must be computed before the next one can be picked.
  int missing() const { return int(text_.size()) - sequence->computed(); }
  // It gets its next token with a few rows: all but those that wrong drafts took are computed.
  bool goes_on() const { return missing() == 1 + again; }
  // Drafts that may follow its text: what could not be told is not guessed.
  int most_drafts() const;
  bool over() const { return answer_.ended() || failed_; }
  bool failed() const { return failed_; }

  // Whether the next token can be picked as soon as its logits are there; else later (Masks::find).
  bool may_choose(Masks& masks) const { return !masked_ || masks.find(masked_, masked_left()); }

  // What the last row of its text is asked for; adds to Batch::top what that needs.
  Wants wants(const Model&, int* top) const;
  // Picks the next token behind all of its text, which may_choose(), of the k-th row of a step that wanted
  // something, and tells it. Errors: the sampler's, the device's; then nothing has changed. True: a token was
  // told.
  Result<bool> take(Model&, const StepOutput&, size_t k, double at);
  double last_told = 0;  // base/clock.h; 0: nothing was

  // The last word: one of these. `shared_tokens` is told with it.
  void tell_end();
  void tell_cancelled();
  void tell_failed(const Error&);
  int shared_tokens = 0;

 private:
  int masked_left() const;
  Result<int32_t> pick(Model&, const StepOutput&, size_t k);
  bool looks_at_top(const Model&) const;
  void add_probabilities(std::span<const float> logits, Token token);
  GenerationEnd summary(Finish) const;

  GenerationSink sink_;
  std::vector<Token> text_;
  const size_t prompt_;  // tokens of it
  Sampler sampler_;
  const std::shared_ptr<MaskedText> masked_;  // nullptr: any text may come
  Answer answer_;
  const int logprobs_, capacity_;
  const bool completes_;
  bool failed_ = false;
  TokenTold told_;  // its memory is used again
};

}  // namespace gimbal
